"""What operations are described with: parameters, pages of lists and streams."""

from collections.abc import Iterable
from typing import Any

from responses_app.http.session_key import NO_CONTROLS
from responses_app.requests.json_schema import (
    BOOLEAN,
    STRING,
    Schema,
    array_of,
    const,
    enum,
    nullable,
    shape,
    string,
    whole_number,
)

Operation = dict[str, Any]
Paths = dict[str, dict[str, Operation]]

WORD: Schema = {"type": "string", "pattern": f"^{NO_CONTROLS}$"}
SECONDS: Schema = {"type": "number", "description": "Seconds since the epoch."}
WHOLE_SECONDS: Schema = {"type": "integer", "description": "Seconds since the epoch."}


def list_of(item: Schema, **more: Schema) -> Schema:
    """A page of a list."""
    end = nullable(STRING)
    page = {
        "object": const("list"),
        "data": array_of(item),
        "first_id": end,
        "last_id": end,
        "has_more": BOOLEAN,
    }
    return shape({**page, **more})


# -- parameters -------------------------------------------------------------------------
def query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def lifted(schema: Schema) -> Schema:
    """What a parameter or header is, with its description where pages look for it."""
    rest = {name: value for name, value in schema.items() if name != "description"}
    return {"description": schema["description"], "schema": rest}


def header(name: str) -> Schema:
    """One of those that ``answers.REQUEST_HEADERS`` describes."""
    return {"$ref": f"#/components/parameters/{name}"}


def paging(default: int = 20, high: int = 100, order: str = "desc") -> list[Schema]:
    return [
        query("limit", whole_number(1, high, default=default), "How many."),
        query("order", {**enum(("asc", "desc")), "default": order}, "By time."),
        query("after", WORD, "Those that follow this id in the order."),
        query("before", WORD, "Those directly in front of this id."),
    ]


# -- streams ----------------------------------------------------------------------------
DONE_FRAME = shape(
    {"data": const("[DONE]")}, description="The end. A stream that ends without it was cut."
)


def frame(
    payload: Schema, *, event: Schema | None = None, id_: str = "", is_id_sure: bool = False
) -> Schema:
    """One server-sent event whose data is JSON."""
    data = {
        "type": "string",
        "pattern": r"^\{",  # an object, which [DONE] is not
        "contentMediaType": "application/json",
        "contentSchema": payload,
    }
    lines = (
        {"data": data} | ({"event": event} if event else {}) | ({"id": string(id_)} if id_ else {})
    )
    return shape(lines, () if is_id_sure else ("id",))


def names_of(events: Iterable[str]) -> str:
    """For pages that do not show an ``itemSchema``."""
    return "Events: " + ", ".join(f"`{name}`" for name in events) + "."


def stream(*frames: Schema) -> Schema:
    """``itemSchema`` is of each event; comments (``: keepalive``) keep a silent connection open."""
    return {
        "text/event-stream": {
            "itemSchema": frames[0] if len(frames) == 1 else {"oneOf": list(frames)}
        }
    }
