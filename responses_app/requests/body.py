"""From the bytes of a body to a JSON object that every part of the system can take."""

import json
import math
from typing import Any

import orjson

from responses_app.errors import InvalidRequest

MAX_DEPTH = 64
_NOT_A_NUMBER = object()


def parse_object(raw: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _explained(raw, error) from None
    if not isinstance(parsed, dict):
        raise InvalidRequest("The request body must be a JSON object.", code="invalid_body")
    _check(parsed, "", 1)
    return parsed


def _check(value: Any, path: str, depth: int) -> None:
    """Refuse, by name, what no database stores: NUL, lone surrogates, not-a-number, endless nesting."""
    if depth > MAX_DEPTH:
        root = path.split(".")[0].split("[")[0]
        raise InvalidRequest(f"{root} is nested deeper than {MAX_DEPTH} levels.", param=root, code="invalid_json")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key, path or None, "a key")
            _check(inner, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check(inner, f"{path}[{index}]", depth + 1)
    elif isinstance(value, str):
        _check_text(value, path, "its text")
    elif value is _NOT_A_NUMBER or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidRequest(f"{path} must be a JSON number; NaN and Infinity are not.", param=path)


def _check_text(text: str, path: str | None, what: str) -> None:
    where = path or "The body"
    if "\0" in text:
        raise InvalidRequest(f"{where}: {what} contains a NUL character.", param=path, code="invalid_text")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRequest(f"{where}: {what} contains a lone surrogate.", param=path, code="invalid_text")


def _explained(raw: bytes, error: ValueError) -> InvalidRequest:
    """Find the field that a strict parser could only give a line and a column for."""
    try:
        lenient = json.loads(raw, parse_constant=lambda _: _NOT_A_NUMBER)
        _check(lenient, "", 1)
    except InvalidRequest as found:
        return found
    except (ValueError, RecursionError):
        pass
    return InvalidRequest(f"The request body is not valid JSON: {error}", code="invalid_json")
