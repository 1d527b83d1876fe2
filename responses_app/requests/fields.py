"""Small strict readers: each takes a value and its name, and names what it refuses.

A reader fixes the type of a value before anything looks it up, joins it or counts with it: in
JSON an array can stand where a name belongs, and Python raises where an array is used as a key.
"""

from collections.abc import Callable
from typing import Any

from responses_app.protocol.errors import InvalidRequest

Reader = Callable[[Any, str], Any]

METADATA_PAIRS = 16
METADATA_KEY_CHARS = 64
METADATA_VALUE_CHARS = 512


def wrong_type(name: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"{name} must be {wanted}.", param=name, code="invalid_type")


def boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(name, "true or false")
    return value


def text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "a string")
    return value


def an_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong_type(name, "an object")
    return value


def array(value: Any, name: str, wanted: str = "an array") -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(name, wanted)
    return value


def texts(value: Any, name: str) -> list[str]:
    given = array(value, name, "an array of strings")
    return [text(entry, f"{name}[{index}]") for index, entry in enumerate(given)]


def optional(read: Reader) -> Reader:
    """The same reader for a field where null means the same as absent."""

    def read_or_none(value: Any, name: str) -> Any:
        return None if value is None else read(value, name)

    return read_or_none


def short_text(max_chars: int) -> Reader:
    def read(value: Any, name: str) -> str:
        if not 0 < len(text(value, name)) <= max_chars:
            raise InvalidRequest(f"{name} must have from 1 to {max_chars} characters.", param=name)
        return str(value)

    return read


def integer(low: int, high: int) -> Reader:
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

    return read


def number(low: float, high: float) -> Reader:
    def read(value: Any, name: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type(name, "a number")
        if not low <= value <= high:
            raise InvalidRequest(
                f"{name} must be from {low:g} to {high:g}.", param=name, code="out_of_range"
            )
        return value

    return read


def choice(*allowed: str) -> Reader:
    def read(value: Any, name: str) -> str:
        if value not in allowed:
            raise InvalidRequest(
                f"{name} must be one of {', '.join(allowed)}.", param=name, code="invalid_value"
            )
        return str(value)

    return read


def metadata(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type(name, "an object of strings")
    if len(value) > METADATA_PAIRS:
        raise InvalidRequest(f"{name} may hold at most {METADATA_PAIRS} pairs.", param=name)
    for key, entry in value.items():
        if len(key) > METADATA_KEY_CHARS:
            raise InvalidRequest(
                f"A key of {name} has more than {METADATA_KEY_CHARS} characters.", param=name
            )
        if len(text(entry, f"{name}.{key}")) > METADATA_VALUE_CHARS:
            raise InvalidRequest(
                f"{name}.{key} has more than {METADATA_VALUE_CHARS} characters.",
                param=f"{name}.{key}",
            )
    return value
