"""Headers that change what a request means."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from responses_app.models.sessions import MAX_SESSION_ID_CHARS, TurnPolicy
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import choice

SESSION_HEADER = "X-Hermes-Session-Id"
TURN_POLICY_HEADER = "X-Hermes-Turn-Policy"
IGNORED_HEADER = "X-Hermes-Ignored"
LAST_EVENT_HEADER = "Last-Event-ID"
MAX_CURSOR_DIGITS = 11
MAX_IGNORED_CHARS = 2000  # the row keeps the whole list


# The document shows the same patterns.
SESSION_ID = rf"(?!\.{{1,2}}$)[ -.0-\[\]-~]{{1,{MAX_SESSION_ID_CHARS}}}"
_SESSION_ID = re.compile(SESSION_ID)


def ignored_value(names: Sequence[str]) -> str:
    """Field names are the client's words: they must not end the header and start another."""
    escaped = ", ".join(names).encode("unicode_escape").decode()
    return escaped if len(escaped) <= MAX_IGNORED_CHARS else escaped[:MAX_IGNORED_CHARS] + "..."


def ignored_headers(body: dict[str, Any], known: Collection[str]) -> dict[str, str]:
    """The header that names the fields of a body which nothing acts on, if there are any."""
    unknown = sorted(
        name for name, value in body.items() if value is not None and name not in known
    )
    if not unknown:
        return {}
    return {IGNORED_HEADER: ignored_value(unknown)}


def read_session_id(value: str | None, name: str = SESSION_HEADER) -> str | None:
    if value is None:
        return None
    if not _SESSION_ID.fullmatch(value):
        raise InvalidRequest(
            f"{name} must have 1 to {MAX_SESSION_ID_CHARS} printable ASCII characters without slashes.",
            param=name,
            code="invalid_session_id",
        )
    return value


def read_turn_policy(value: str | None, name: str = TURN_POLICY_HEADER) -> TurnPolicy | None:
    return None if value is None else TurnPolicy(choice(*TurnPolicy.values)(value, name))


def read_last_event_id(value: str | None) -> int | None:
    """A browser sends an empty one where it has seen no event with an id."""
    return None if value == "" else read_cursor(value, LAST_EVENT_HEADER)


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
