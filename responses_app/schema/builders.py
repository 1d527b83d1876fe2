"""Small words to write schemas and operations with."""

from collections.abc import Iterable
from typing import Any

from responses_app.http.session_key import NO_CONTROLS

Schema = dict[str, Any]
Operation = dict[str, Any]
Paths = dict[str, dict[str, Operation]]

NULL: Schema = {"type": "null"}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
STRING: Schema = {"type": "string"}
WORD: Schema = {"type": "string", "pattern": f"^{NO_CONTROLS}$"}
ANYTHING: Schema = {}
OPEN_OBJECT: Schema = {"type": "object", "additionalProperties": True}
SECONDS: Schema = {"type": "number", "description": "Seconds since the epoch."}
WHOLE_SECONDS: Schema = {"type": "integer", "description": "Seconds since the epoch."}


# -- schemas ----------------------------------------------------------------------------
def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def const(value: Any) -> Schema:
    return {"const": value}


def enum(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def text(description: str, **limits: Any) -> Schema:
    return {"type": "string", "description": description, **limits}


def whole(low: int, high: int, **more: Any) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, **more}


def array(of: Schema, **limits: Any) -> Schema:
    return {"type": "array", "items": of, **limits}


def any_of(*schemas: Schema, description: str = "") -> Schema:
    return {"anyOf": list(schemas), **_described(description)}


def nullable(schema: Schema) -> Schema:
    return any_of(schema, NULL)


def told(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def shape(
    properties: dict[str, Schema], optional: Iterable[str] = (), description: str = ""
) -> Schema:
    """An object that the server makes: every key is there, but for those that may be absent."""
    required = sorted(properties.keys() - set(optional))
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **_described(description),
    }


def fields(
    properties: dict[str, Schema], required: Iterable[str] = (), description: str = ""
) -> Schema:
    """An object that a client sends: null is as good as absent, and unknown fields are let in."""
    given = {
        name: schema if name in required else nullable(schema)
        for name, schema in properties.items()
    }
    return loose(shape(given, properties.keys() - set(required), description))


def given(name: str) -> Schema:
    """The field is there, and not null."""
    return {"required": [name], "properties": {name: {"not": NULL}}}


def loose(schema: Schema) -> Schema:
    """An object with more keys than are told here."""
    return {**schema, "additionalProperties": True}


def union(tag: str, members: dict[str, Schema], description: str = "") -> Schema:
    """One of several objects, told apart by the value of ``tag``."""
    return {
        "oneOf": [
            {**member, "properties": {tag: const(value), **member["properties"]}}
            | _required(member, tag)
            for value, member in members.items()
        ],
        **_described(description),
    }


def list_of(item: Schema, **more: Schema) -> Schema:
    """A page of a list."""
    end = nullable(STRING)
    page = {
        "object": const("list"),
        "data": array(item),
        "first_id": end,
        "last_id": end,
        "has_more": BOOLEAN,
    }
    return shape({**page, **more})


def _required(member: Schema, tag: str) -> Schema:
    return {"required": sorted({tag, *member.get("required", ())})}


def _described(description: str) -> Schema:
    return {"description": description} if description else {}


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
        query("limit", whole(1, high, default=default), "How many."),
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
        {"data": data} | ({"event": event} if event else {}) | ({"id": text(id_)} if id_ else {})
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
