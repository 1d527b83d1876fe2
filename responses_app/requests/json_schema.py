"""JSON Schema, in small functions: for the readers of requests and for the OpenAPI document."""

from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
STRING: Schema = {"type": "string"}
ANYTHING: Schema = {}
OPEN_OBJECT: Schema = {"type": "object", "additionalProperties": True}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def const(value: Any) -> Schema:
    return {"const": value}


def enum(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def string(description: str, **limits: Any) -> Schema:
    return {"type": "string", "description": description} | limits


def short_string(max_chars: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": max_chars}


def whole_number(low: int, high: int, **more: Any) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high} | more


def array_of(of: Schema, **limits: Any) -> Schema:
    return {"type": "array", "items": of} | limits


def any_of(*schemas: Schema, description: str = "") -> Schema:
    return described({"anyOf": list(schemas)}, description)


def nullable(schema: Schema) -> Schema:
    return any_of(schema, NULL)


def described(schema: Schema, description: str) -> Schema:
    if not description:
        return schema
    return schema | {"description": description}


def shape(
    properties: dict[str, Schema], optional: Iterable[str] = (), description: str = ""
) -> Schema:
    """An object that the server makes: it has every key that is not optional."""
    schema: Schema = {"type": "object", "properties": properties}
    required = sorted(properties.keys() - set(optional))
    if required:
        schema["required"] = required
    return described(schema, description)


def request_object(
    properties: dict[str, Schema], required: Iterable[str] = (), description: str = ""
) -> Schema:
    """An object that a client sends: null means absent, and unknown fields are allowed."""
    optional = properties.keys() - set(required)
    given = dict(properties)
    for name in optional:
        given[name] = nullable(properties[name])
    return loose(shape(given, optional, description))


def present(name: str) -> Schema:
    """The object has the field, and it is not null."""
    return {"required": [name], "properties": {name: {"not": NULL}}}


def loose(schema: Schema) -> Schema:
    """An object that may have other keys than those listed."""
    return schema | {"additionalProperties": True}


def tagged(schema: Schema, tag: str, value: str) -> Schema:
    """The same object with the constant field ``tag``."""
    properties = {tag: const(value)} | schema["properties"]
    required = {tag, *schema.get("required", ())}
    return schema | {"properties": properties, "required": sorted(required)}


def union(tag: str, members: dict[str, Schema], description: str = "") -> Schema:
    """One of several objects; the value of ``tag`` selects which."""
    variants = [tagged(member, tag, value) for value, member in members.items()]
    return described({"oneOf": variants}, description)
