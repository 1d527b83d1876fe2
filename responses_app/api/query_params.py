"""Values of a query string."""

from collections.abc import Iterable

from django.http import QueryDict

from responses_app.http.session_key import has_controls
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import choice, integer, optional, wrong_type

MAX_DIGITS = 9


def read_text(params: QueryDict, name: str) -> str | None:
    """A text to search for; some clients send an empty one for none."""
    value = params.get(name)
    if value and has_controls(value):
        problem = f"{name} contains control characters."
        raise InvalidRequest(problem, param=name, code="invalid_text")
    return value or None


def read_map(params: QueryDict, name: str) -> dict[str, str]:
    """The values of ``name[key]``, by their keys."""
    values = {}
    for param in params:
        if not (param.startswith(f"{name}[") and param.endswith("]")):
            continue
        key = param.removeprefix(f"{name}[").removesuffix("]")
        values[key] = read_text(params, param) or ""
        if has_controls(key):
            problem = f"A key of {name} contains control characters."
            raise InvalidRequest(problem, param=name, code="invalid_text")
    return values


def read_choice(params: QueryDict, name: str, allowed: Iterable[str]) -> str | None:
    """One of a few words; the empty text is none of them."""
    chosen: str | None = optional(choice(*allowed))(params.get(name), name)
    return chosen


def read_count(params: QueryDict, name: str, default: int, low: int, high: int) -> int:
    value = params.get(name)
    if value is None:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise wrong_type(name, "a whole number")
    count: int = integer(low, high)(int(value), name)
    return count
