"""Options of a model: values that go with every request to it."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.known_keys import MODEL_OPTIONS

# `stream` and `messages` are the server's; `model` has a setting of its own.
RESERVED_FIELDS = frozenset(("messages", "input", "model", "stream", "tools"))
RESERVED_HEADERS = frozenset(("authorization", "content-length", "content-type", "host"))
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def read_options(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Those of OPTIONS that are given, checked; every error names its entry."""
    options: dict[str, Any] = {}
    for name, read in OPTIONS.items():
        if given.get(name) is not None:
            options[name] = read(given[name], f"{place}.{name}")
    return options


def check_only_options(given: Any, place: str) -> None:
    """For a field that has nothing but options; `read_options` leaves other keys to its caller."""
    problem = MODEL_OPTIONS.problem(_mapping(given, place), place)
    if problem:
        raise ImproperlyConfigured(f"{problem}.")


def _temperature(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise ImproperlyConfigured(f"{name} must be a number from 0 to 2.")
    return float(value)


def _max_tokens(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least 1.")
    return value


def _extra_body(value: Any, name: str) -> dict[str, Any]:
    fields = _mapping(value, name)
    for field in fields:
        if field in RESERVED_FIELDS:
            raise ImproperlyConfigured(f"{name}.{field} is set by the server itself.")
    try:
        orjson.dumps(fields)
    except TypeError as error:
        raise ImproperlyConfigured(f"{name} can't be sent as JSON: {error}.") from error
    return fields


def _extra_headers(value: Any, name: str) -> dict[str, str]:
    headers = _texts(value, name)
    for header, text in headers.items():
        if header.lower() in RESERVED_HEADERS:
            raise ImproperlyConfigured(f"{name}.{header} is set by the server itself.")
        if not _HEADER_NAME.fullmatch(header):
            raise ImproperlyConfigured(f"{name}.{header} can't be the name of a header.")
        if not text.isascii() or not text.isprintable():
            raise ImproperlyConfigured(f"{name}.{header} must be printable ASCII.")
    return headers


def _texts(value: Any, name: str) -> dict[str, str]:
    found = _mapping(value, name)
    for key, text in found.items():
        if not isinstance(text, str):
            raise ImproperlyConfigured(f"{name}.{key} must be text; put it in quotes.")
    return found


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ImproperlyConfigured(f"{name} must be true or false.")
    return value


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ImproperlyConfigured(f"{name} must be a mapping of names to values.")
    return dict(value)


OPTIONS = {
    "temperature": _temperature,
    "max_tokens": _max_tokens,
    "extra_body": _extra_body,
    "extra_headers": _extra_headers,
    "query": _texts,
    "upstream_resume": _flag,
    "vision": _flag,
    "files": _flag,
}
