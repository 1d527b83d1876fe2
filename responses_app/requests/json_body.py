"""From the bytes of a body to a JSON object that the server can store."""

import asyncio
import json
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, TypeVar

import orjson

from responses_app.protocol.errors import InvalidRequest

T = TypeVar("T")

MAX_DEPTH = 64
MAX_NAME_CHARS = 200
# Values and field names together. A history of 15,000 messages has fewer; the largest body has
# room for millions of zeros, which take seconds to parse and to check.
MAX_VALUES = 200_000
LOOP_BODY_BYTES = 64 * 1024  # a smaller body is parsed and checked in about a millisecond
# The parser holds the interpreter's lock: more threads take it from the event loop more often.
PARSER_THREADS = 2
_parsers = ThreadPoolExecutor(PARSER_THREADS, thread_name_prefix="body-parser")
# Every value and field name but the outermost follows one of these.
_SEPARATORS = b",:[{"
_QUOTE = b'"'[0]
# Possessive, and an open text ends with the body: the search never backtracks.
_SEPARATOR_OR_TEXT = re.compile(rb'[,:\[{]|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_A_NUMBER = object()
_TOO_LARGE = object()
# The path to a value: the path to its container, and its key or index there.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


async def parse_body(raw: bytes) -> dict[str, Any]:
    """``parse_object`` for callers on the event loop."""
    return await run_beside_loop(len(raw), parse_object, raw)


async def run_beside_loop(body_bytes: int, work: Callable[..., T], *args: Any) -> T:
    """Work that takes longer with a larger body: in a thread, unless the body is small."""
    if body_bytes <= LOOP_BODY_BYTES:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(_parsers, partial(work, *args))


def parse_object(raw: bytes) -> dict[str, Any]:
    if not raw:
        raise InvalidRequest("The request body is empty; send a JSON object.", code="invalid_body")
    if _has_too_many_values(raw):
        raise InvalidRequest(
            f"The request body has more than {MAX_VALUES} values and field names. Send fewer.",
            code="too_many_values",
        )
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _explained(raw, error) from None
    if not isinstance(parsed, dict):
        raise InvalidRequest("The request body must be a JSON object.", code="invalid_body")
    _check(parsed, None, 1)
    return parsed


def _has_too_many_values(raw: bytes) -> bool:
    if len(raw) <= MAX_VALUES or sum(map(raw.count, _SEPARATORS)) <= MAX_VALUES:
        return False
    values = 0
    for found in _SEPARATOR_OR_TEXT.finditer(raw):
        values += raw[found.start()] != _QUOTE
        if values > MAX_VALUES:
            return True
    return False


def _check(value: Any, path: _Path, depth: int) -> None:
    """Refuse, by name, what no database stores: NUL, lone surrogates, NaN, deep nesting."""
    if depth > MAX_DEPTH:
        root = _written(path).split(".")[0].split("[")[0]
        raise InvalidRequest(
            f"{root} is nested deeper than {MAX_DEPTH} levels.", param=root, code="invalid_json"
        )
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key, path, "a key")
            _check(inner, (path, key), depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check(inner, (path, index), depth + 1)
    elif isinstance(value, str):
        _check_text(value, path, "its text")
    elif value is _TOO_LARGE:
        name = _written(path)
        problem = f"{name} is a number too large to be stored."
        raise InvalidRequest(problem, param=name, code="out_of_range")
    elif value is _NOT_A_NUMBER:
        name = _written(path)
        raise InvalidRequest(f"{name} must be a JSON number; NaN and Infinity are not.", param=name)


def _check_text(text: str, path: _Path, what: str) -> None:
    if "\0" in text:
        problem = "a NUL character"
    elif not _is_unicode(text):
        problem = "a lone surrogate"
    else:
        return
    name = _written(path)
    raise InvalidRequest(
        f"{name or 'The body'}: {what} contains {problem}.",
        param=name or None,
        code="invalid_text",
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(path: _Path) -> str:
    """The path as a client would write it; only an error needs it."""
    pieces: list[str] = []
    while path is not None:
        path, step = path
        if isinstance(step, int):
            pieces.append(f"[{step}]")
        else:
            pieces.append(f".{step}")
    name = "".join(reversed(pieces)).removeprefix(".")
    return name.encode("utf-8", "replace").decode()[:MAX_NAME_CHARS]


def _not_a_number(written: str) -> object:
    return _NOT_A_NUMBER


def _finite(written: str) -> object:
    """Whole numbers in Python have no bound; those of other parsers and of databases do."""
    value = float(written)
    if math.isfinite(value):
        return value
    return _TOO_LARGE


def _explained(raw: bytes, error: ValueError) -> InvalidRequest:
    """The strict parser reports a line and a column: find the field."""
    try:
        lenient = json.loads(
            raw,
            parse_constant=_not_a_number,
            parse_int=_finite,
            parse_float=_finite,
        )
        _check(lenient, None, 1)
    except InvalidRequest as found:
        return found
    except (ValueError, RecursionError):
        pass  # no field is to blame: report the strict parser's message
    return InvalidRequest(f"The request body is not valid JSON: {error}", code="invalid_json")
