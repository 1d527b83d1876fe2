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
    page = {
        "object": const("list"),
        "data": array_of(item),
        "first_id": nullable(STRING),
        "last_id": nullable(STRING),
        "has_more": BOOLEAN,
    }
    return shape(page | more)


# -- parameters -------------------------------------------------------------------------
def query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def flag(name: str, description: str, *, default: bool = False) -> Schema:
    return query(name, BOOLEAN | {"default": default}, description)


def with_description_outside(schema: Schema) -> Schema:
    """Parameters and headers have their description beside the schema."""
    inner = dict(schema)
    description = inner.pop("description")
    return {"description": description, "schema": inner}


def header(name: str) -> Schema:
    """One of ``operations.REQUEST_HEADERS``."""
    return {"$ref": f"#/components/parameters/{name}"}


def paging(default: int = 20, high: int = 100, order: str = "desc") -> list[Schema]:
    return [
        query("limit", whole_number(1, high, default=default), "The number of entries."),
        query("order", enum(("asc", "desc")) | {"default": order}, "By time."),
        query("after", WORD, "Those that follow this id in the order."),
        query("before", WORD, "Those directly in front of this id."),
    ]


# -- streams ----------------------------------------------------------------------------
DONE_FRAME = shape(
    {"data": const("[DONE]")}, description="The end. A stream without it was interrupted."
)


def frame(
    payload: Schema, *, event: Schema | None = None, id_: str = "", has_id: bool = False
) -> Schema:
    """One server-sent event whose data is JSON; ``has_id`` means that every event has an id."""
    data = {
        "type": "string",
        "pattern": r"^\{",  # an object, which [DONE] is not
        "contentMediaType": "application/json",
        "contentSchema": payload,
    }
    lines: dict[str, Schema] = {"data": data}
    if event is not None:
        lines["event"] = event
    if id_:
        lines["id"] = string(id_)
    optional = ["id"]
    if has_id:
        optional = []
    return shape(lines, optional)


def names_of(events: Iterable[str]) -> str:
    """The events in prose: API browsers do not show an ``itemSchema``."""
    names = ", ".join(f"`{name}`" for name in events)
    return f"Events: {names}."


def stream(*frames: Schema) -> Schema:
    """``itemSchema`` describes each event; comments (``: keepalive``) are not events."""
    schema: Schema = {"oneOf": list(frames)}
    if len(frames) == 1:
        schema = frames[0]
    return {"text/event-stream": {"itemSchema": schema}}
