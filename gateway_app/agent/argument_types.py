"""Fits the arguments of a call to the types in the tool's JSON schema, where the value is obvious.

Models send "10" for a number, 10 for a text, a JSON text for an object, or one value for a list of
one. References and combined schemas other than unions are left to the tool.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson

Schema = dict[str, Any]

_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


class Misfit(ValueError):
    """A value that does not fit the schema; the message names its field, for the model."""


def fitted(arguments: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Raises Misfit."""
    return _fit_object("", arguments, schema)


def _fit_object(path: str, given: dict[str, Any], schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    result = {}
    for name, value in given.items():
        result[name] = _fit(f"{path}{name}", value, properties.get(name))
    for name in schema.get("required") or ():
        if name not in given:
            raise Misfit(f"the argument '{path}{name}' is missing")
    return result


def _fit(path: str, value: Any, schema: Any) -> Any:
    if not isinstance(schema, dict) or value is None:  # tools take null for a value left out
        return value
    union = schema.get("anyOf") or schema.get("oneOf")
    if union:
        return _fit_union(path, value, union)
    kinds = _kinds(schema)
    if not kinds:
        return value
    if not any(_is_of(value, kind) for kind in kinds):
        value = _coerced(path, value, kinds, schema)
    if isinstance(value, dict):
        return _fit_object(f"{path}.", value, schema)
    if isinstance(value, list):
        items = schema.get("items")
        return [_fit(f"{path}[{index}]", inner, items) for index, inner in enumerate(value)]
    return value


def _fit_union(path: str, value: Any, union: list[Any]) -> Any:
    """The value as it is, unless it fits one of the schemas only by coercion."""
    if any(_is_one_of(value, schema) for schema in union):
        return value
    for schema in union:
        try:
            return _fit(path, value, schema)
        except Misfit:
            continue
    return value


def _is_one_of(value: Any, schema: Any) -> bool:
    kinds = _kinds(schema) if isinstance(schema, dict) else []
    return not kinds or any(_is_of(value, kind) for kind in kinds)


def _kinds(schema: Schema) -> list[str]:
    """The types that a schema allows; empty for any, or for one that is not known."""
    given = schema.get("type") or []
    kinds = [given] if isinstance(given, str) else list(given)
    if not all(kind in _TYPES for kind in kinds):
        return []
    return kinds


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _coerced(path: str, value: Any, kinds: list[str], schema: Schema) -> Any:
    for kind in kinds:
        if kind == "array":
            found = _as_array(value, schema)
        elif kind in _COERCIONS:
            found = _COERCIONS[kind](value)
        else:
            found = None
        if found is not None:
            return found
    expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
    raise Misfit(f"the argument '{path}' must be {expected}")


# -- one type each; None where the value is not obvious ---------------------------------
def _as_integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        whole: int | None = _parsed(value, int)
        return whole
    return None


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        found: int | float | None = _parsed(value, (int, float))
        return found
    return None


def _as_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip())
    return None


def _as_string(value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return orjson.dumps(value).decode()
    return None


def _as_object(value: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = _parsed(value, dict)
    return found


def _as_array(value: Any, schema: Schema) -> list[Any] | None:
    found: list[Any] | None = _parsed(value, list)
    if found is not None:
        return found
    items = schema.get("items")
    kinds = _kinds(items) if isinstance(items, dict) else []
    is_broken_array = isinstance(value, str) and value.lstrip().startswith("[")
    if not is_broken_array and any(_is_of(value, kind) for kind in kinds):
        return [value]
    return None


def _parsed(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, str):
        return None
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, kind) else None


_COERCIONS: dict[str, Callable[[Any], Any]] = {
    "string": _as_string,
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "object": _as_object,
}
