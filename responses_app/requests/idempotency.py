"""When two requests are the same one."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import orjson

from responses_app.http.session_key import SESSION_KEY_HEADER
from responses_app.models.idempotency import MAX_KEY_CHARS
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.tools import FORM_HEADER
from responses_app.services.idempotency import RequestIdentity

KEY_HEADER = "Idempotency-Key"
VISIBLE = "[!-~]"  # in ASCII; the document shows the same
_VISIBLE = re.compile(f"{VISIBLE}+")
REPLAYED_HEADER = "Idempotency-Replayed"
RETRY_HEADER = "x-stainless-retry-count"
# Headers that change what a body asks for.
MEANINGFUL_HEADERS = (SESSION_HEADER, SESSION_KEY_HEADER, FORM_HEADER)


def read_identity(
    header: Callable[[str], str | None], path: str, body: dict[str, Any]
) -> RequestIdentity:
    """For every door that generates: pass the result on in ``Admission.identity``."""
    meant = {name: value for name in MEANINGFUL_HEADERS if (value := header(name)) is not None}
    asked = {name: value for name, value in body.items() if name != "stream"}
    canonical = orjson.dumps([path, meant, asked], option=orjson.OPT_SORT_KEYS)
    return RequestIdentity(
        digest=hashlib.sha256(canonical).hexdigest(),
        key=_read_key(header(KEY_HEADER)),
        is_retry=_retries(header(RETRY_HEADER)) > 0,
    )


def _read_key(value: str | None) -> str | None:
    if value is None:
        return None
    if len(value) > MAX_KEY_CHARS or not _VISIBLE.fullmatch(value):
        raise InvalidRequest(
            f"{KEY_HEADER} must have 1 to {MAX_KEY_CHARS} visible ASCII characters.",
            param=KEY_HEADER,
            code="invalid_idempotency_key",
        )
    return value


def _retries(value: str | None) -> int:
    return (
        int(value)
        if value is not None and value.isascii() and value.isdigit() and len(value) < 10
        else 0
    )
