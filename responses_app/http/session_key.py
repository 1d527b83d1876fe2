"""``X-Hermes-Session-Key``: the client's name for the person or thing that a session belongs to."""

import re

from responses_app.models import MAX_SESSION_KEY_CHARS
from responses_app.protocol.errors import InvalidRequest

SESSION_KEY_HEADER = "X-Hermes-Session-Key"
NO_CONTROLS = r"[^\u0000-\u001f\u007f-\u009f]*"  # the OpenAPI document has the same pattern
_NO_CONTROLS = re.compile(NO_CONTROLS)


def has_controls(text: str) -> bool:
    """PostgreSQL can't search for a NUL, and a log line must not contain the others."""
    return _NO_CONTROLS.fullmatch(text) is None


def read_session_key(value: str | None) -> str | None:
    """The key as text; in a header of ASGI, each character stands for one byte of its UTF-8."""
    if value is None:
        return None
    try:
        key = value.encode("latin-1").decode()
    except UnicodeDecodeError:
        key = value
    if not 0 < len(key) <= MAX_SESSION_KEY_CHARS or has_controls(key):
        raise InvalidRequest(
            f"{SESSION_KEY_HEADER} must have 1 to {MAX_SESSION_KEY_CHARS} characters "
            "without control characters.",
            param=SESSION_KEY_HEADER,
        )
    return key
