"""Fields that hold other fields: arrays, objects, and objects whose type selects the rest."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests import json_schema
from responses_app.requests.fields import (
    Field,
    Fields,
    an_object,
    choice,
    schemas_of,
    text,
    wrong_type,
)
from responses_app.requests.json_schema import Schema

T = TypeVar("T")

METADATA_PAIRS = 16
METADATA_KEY_CHARS = 64
METADATA_VALUE_CHARS = 512


def read_array(value: Any, name: str, wanted: str = "an array") -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(name, wanted)
    return value


def array(
    of: Field[T], what: str, *, max_items: int | None = None, is_filled: bool = False
) -> Field[list[T]]:
    """``what`` names its entries in errors; ``is_filled`` refuses an empty array."""

    def read(value: Any, name: str) -> list[T]:
        entries = read_array(value, name, f"an array of {what}")
        if is_filled and not entries:
            raise wrong_type(name, f"an array of {what}")
        if max_items is not None and len(entries) > max_items:
            raise InvalidRequest(f"{name} may hold at most {max_items} {what}.", param=name)
        return [of.read(entry, f"{name}[{index}]") for index, entry in enumerate(entries)]

    schema = json_schema.array_of(of.schema)
    if is_filled:
        schema["minItems"] = 1
    if max_items is not None:
        schema["maxItems"] = max_items
    return Field(read, schema)


texts = array(text, "strings")


def object_of(fields: Fields, required: Iterable[str] = ()) -> Field[dict[str, Any]]:
    """An object with these fields. Null means absent, and other fields stay as they were sent."""
    needed = frozenset(required)
    readers = [(key, field.read, key in needed) for key, field in fields.items()]

    def read(value: Any, name: str) -> dict[str, Any]:
        given = dict(an_object.read(value, name))
        for key, read_inner, is_needed in readers:
            inner = given.get(key)
            if inner is not None or is_needed:
                given[key] = read_inner(inner, f"{name}.{key}")
        return given

    return Field(read, json_schema.request_object(schemas_of(fields), needed))


def object_or(other: Field[T], fields: Field[dict[str, Any]]) -> Field[T | dict[str, Any]]:
    """An object, or what ``other`` reads."""

    def read(value: Any, name: str) -> T | dict[str, Any]:
        if isinstance(value, dict):
            return fields.read(value, name)
        return other.read(value, name)

    return Field(read, json_schema.any_of(other.schema, fields.schema))


Members = Mapping[str, Field[dict[str, Any]]]


def one_of_types(members: Members) -> Field[dict[str, Any]]:
    """An object whose ``type`` selects its other fields."""
    kinds = choice(*members)

    def read(value: Any, name: str) -> dict[str, Any]:
        given = an_object.read(value, name)
        kind = kinds.read(given.get("type"), f"{name}.type")
        return members[kind].read(given, name)

    return Field(read, json_schema.union("type", schemas_of(members)))


def any_type(members: Members) -> Field[dict[str, Any]]:
    """An object whose ``type`` selects its other fields; those of other types are not checked."""

    def read(value: Any, name: str) -> dict[str, Any]:
        given = an_object.read(value, name)
        member = members.get(text.read(given.get("type"), f"{name}.type"))
        if member is None:
            return given
        return member.read(given, name)

    known = json_schema.union("type", schemas_of(members))
    other_type: Schema = {"type": "string", "not": {"enum": list(members)}}
    other = json_schema.loose(json_schema.shape({"type": other_type}))
    return Field(read, json_schema.any_of(known, other))


def _read_metadata(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type(name, "an object of strings")
    if len(value) > METADATA_PAIRS:
        raise InvalidRequest(f"{name} may hold at most {METADATA_PAIRS} pairs.", param=name)
    for key, entry in value.items():
        if len(key) > METADATA_KEY_CHARS:
            raise InvalidRequest(
                f"A key of {name} has more than {METADATA_KEY_CHARS} characters.", param=name
            )
        if len(text.read(entry, f"{name}.{key}")) > METADATA_VALUE_CHARS:
            raise InvalidRequest(
                f"{name}.{key} has more than {METADATA_VALUE_CHARS} characters.",
                param=f"{name}.{key}",
            )
    return value


metadata = Field(
    _read_metadata,
    {
        "type": "object",
        "maxProperties": METADATA_PAIRS,
        "propertyNames": {"maxLength": METADATA_KEY_CHARS},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_CHARS},
    },
)
