"""Fields of a request: each reads a value strictly, and has the JSON schema of what it accepts.

A reader takes a value and its name, and names what it refuses. It fixes the type of a value before
other code looks it up, joins it or counts with it: in JSON an array can stand where a name belongs,
and Python raises where an array is used as a key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests import json_schema
from responses_app.requests.json_schema import Schema

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Field(Generic[T]):
    """A reader and its schema: the OpenAPI document shows what the server accepts."""

    read: Callable[[Any, str], T]
    schema: Schema

    def __call__(self, value: Any, name: str) -> T:
        return self.read(value, name)

    def described(self, description: str) -> "Field[T]":
        return replace(self, schema=json_schema.described(self.schema, description))

    def then(self, convert: Callable[[T], U]) -> "Field[U]":
        """The same field, with its value converted after the check."""

        def read(value: Any, name: str) -> U:
            return convert(self.read(value, name))

        return Field(read, self.schema)


Fields = Mapping[str, Field[Any]]


def wrong_type(name: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"{name} must be {wanted}.", param=name, code="invalid_type")


# -- bodies -----------------------------------------------------------------------------
def without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """In a request, null means the same as absent."""
    return {name: value for name, value in body.items() if value is not None}


def read_fields(fields: Fields, body: dict[str, Any]) -> dict[str, Any]:
    """Those of the fields that the body has."""
    read: dict[str, Any] = {}
    for name, field in fields.items():
        value = body.get(name)
        if value is not None:
            read[name] = field.read(value, name)
    return read


def schemas_of(fields: Fields) -> dict[str, Schema]:
    return {name: field.schema for name, field in fields.items()}


# -- plain values -----------------------------------------------------------------------
def _read_boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(name, "true or false")
    return value


def _read_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "a string")
    return value


def _read_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong_type(name, "an object")
    return value


boolean = Field(_read_boolean, json_schema.BOOLEAN)
text = Field(_read_text, json_schema.STRING)
an_object = Field(_read_object, json_schema.OPEN_OBJECT)


def short_text(max_chars: int) -> Field[str]:
    def read(value: Any, name: str) -> str:
        if not 0 < len(_read_text(value, name)) <= max_chars:
            raise InvalidRequest(f"{name} must have from 1 to {max_chars} characters.", param=name)
        return str(value)

    return Field(read, json_schema.short_string(max_chars))


def integer(low: int, high: int) -> Field[int]:
    """JSON has one type of number: ``2.0`` is a whole one."""

    def read(value: Any, name: str) -> int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != int(value):
            raise wrong_type(name, "a whole number")
        if not low <= value <= high:
            raise InvalidRequest(
                f"{name} must be from {low} to {high}.", param=name, code="out_of_range"
            )
        return int(value)

    return Field(read, json_schema.whole_number(low, high))


def number(low: float, high: float) -> Field[float]:
    def read(value: Any, name: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type(name, "a number")
        if not low <= value <= high:
            raise InvalidRequest(
                f"{name} must be from {low:g} to {high:g}.", param=name, code="out_of_range"
            )
        return value

    return Field(read, {"type": "number", "minimum": low, "maximum": high})


def choice(*allowed: str) -> Field[str]:
    def read(value: Any, name: str) -> str:
        if value not in allowed:
            raise InvalidRequest(
                f"{name} must be one of {', '.join(allowed)}.", param=name, code="invalid_value"
            )
        return str(value)

    return Field(read, json_schema.enum(allowed))


def _read_anything(value: Any, name: str) -> Any:
    return value


ignored = Field(_read_anything, json_schema.ANYTHING).described(
    "Accepted, and named in X-Hermes-Ignored."
)


def unsupported(reason: str = "") -> Field[None]:
    """A field of the OpenAI API that this server refuses."""

    def read(value: Any, name: str) -> None:
        message = reason or f"{name} is not supported."
        raise InvalidRequest(message, param=name, code="unsupported_value")

    return Field(read, json_schema.NULL).described("Not supported.")


def optional(field: Field[T]) -> Field[T | None]:
    """The same field where null means the same as absent."""

    def read(value: Any, name: str) -> T | None:
        if value is None:
            return None
        return field.read(value, name)

    return Field(read, json_schema.nullable(field.schema))
