"""Headers that change what a request means."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from responses_app.models import MAX_SESSION_ID_CHARS, TurnPolicy
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import Field, choice, without_nulls
from responses_app.requests.json_schema import STRING

SESSION_HEADER = "X-Hermes-Session-Id"
TURN_POLICY_HEADER = "X-Hermes-Turn-Policy"
IGNORED_HEADER = "X-Hermes-Ignored"
USAGE_HEADER = "X-Hermes-Usage"
ESTIMATED = "estimated"  # the only value of that header
LAST_EVENT_HEADER = "Last-Event-ID"
MAX_CURSOR_DIGITS = 11
MAX_IGNORED_CHARS = 2000  # the row keeps the whole list
_SESSION_ID = re.compile(rf"(?!\.{{1,2}}$)[ -.0-\[\]-~]{{1,{MAX_SESSION_ID_CHARS}}}")
turn_policy = choice(*TurnPolicy.values)


def ignored_value(names: Sequence[str]) -> str:
    """The client chose the names: unescaped, a line break in one would start another header."""
    escaped = ", ".join(names).encode("unicode_escape").decode()
    if len(escaped) <= MAX_IGNORED_CHARS:
        return escaped
    return escaped[:MAX_IGNORED_CHARS] + "..."


def ignored_headers(body: dict[str, Any], known: Collection[str]) -> dict[str, str]:
    """The header that names the fields of a body which nothing acts on, if there are any."""
    unknown = sorted(without_nulls(body).keys() - set(known))
    if not unknown:
        return {}
    return {IGNORED_HEADER: ignored_value(unknown)}


def usage_headers(*, is_estimated: bool) -> dict[str, str]:
    """A header, since strict clients refuse a field of ours in the usage."""
    if not is_estimated:
        return {}
    return {USAGE_HEADER: ESTIMATED}


def _read_session_id(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _SESSION_ID.fullmatch(value):
        raise InvalidRequest(
            f"{name} must have 1 to {MAX_SESSION_ID_CHARS} printable ASCII characters "
            "without slashes.",
            param=name,
            code="invalid_session_id",
        )
    return value


session_id = Field(_read_session_id, STRING | {"pattern": f"^{_SESSION_ID.pattern}$"})


def read_session_id(value: str | None, name: str = SESSION_HEADER) -> str | None:
    if value is None:
        return None
    return session_id(value, name)


def read_turn_policy(value: str | None, name: str = TURN_POLICY_HEADER) -> TurnPolicy | None:
    if value is None:
        return None
    return TurnPolicy(turn_policy(value, name))


def read_last_event_id(value: str | None) -> int | None:
    """A browser that has received no event with an id sends an empty one."""
    if value == "":
        return None
    return read_cursor(value, LAST_EVENT_HEADER)


def read_cursor(value: str | None, name: str) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_CURSOR_DIGITS):
        raise InvalidRequest(
            f"{name} must be the sequence_number of an event, 0 or more.", param=name
        )
    return int(value)


def read_flag(value: str | None, name: str) -> bool:
    """A boolean of a query string, where SDKs write ``true``."""
    if value is None or value.lower() in ("false", "0"):
        return False
    if value.lower() in ("true", "1"):
        return True
    raise InvalidRequest(f"{name} must be true or false.", param=name)
