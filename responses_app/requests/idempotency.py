"""When two requests are the same one."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import orjson

from responses_app.http.session_key import SESSION_KEY_HEADER
from responses_app.models import MAX_KEY_CHARS
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.client_options import (
    APPROVAL_HEADER,
    CLIENT_TOOLS_HEADER,
    FORM_HEADER,
)
from responses_app.requests.clients import REASONING_HEADER
from responses_app.requests.disconnect import DISCONNECT_HEADER
from responses_app.requests.fields import Field, optional, text, without_nulls
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.json_schema import STRING
from responses_app.services.idempotency import RequestIdentity

KEY_HEADER = "Idempotency-Key"
_KEY = re.compile(f"[!-~]{{1,{MAX_KEY_CHARS}}}")  # visible ASCII
REPLAYED_HEADER = "Idempotency-Replayed"
RETRY_HEADER = "x-stainless-retry-count"
# Headers that change what a body asks for.
MEANINGFUL_HEADERS = (
    SESSION_HEADER,
    SESSION_KEY_HEADER,
    FORM_HEADER,
    CLIENT_TOOLS_HEADER,
    APPROVAL_HEADER,
    DISCONNECT_HEADER,
    REASONING_HEADER,
)


def read_identity(
    header: Callable[[str], str | None], path: str, body: dict[str, Any]
) -> RequestIdentity:
    """For every endpoint that generates: pass the result on in ``Admission.identity``."""
    headers = without_nulls({name: header(name) for name in MEANINGFUL_HEADERS})
    fields = {name: value for name, value in body.items() if name != "stream"}
    canonical = orjson.dumps([path, headers, fields], option=orjson.OPT_SORT_KEYS)
    return RequestIdentity(
        digest=hashlib.sha256(canonical).hexdigest(),
        key=optional(idempotency_key)(header(KEY_HEADER), KEY_HEADER),
        is_retry=_retries(header(RETRY_HEADER)) > 0,
    )


def _read_key(value: Any, name: str) -> str:
    key = text(value, name)
    if not _KEY.fullmatch(key):
        raise InvalidRequest(
            f"{name} must have 1 to {MAX_KEY_CHARS} visible ASCII characters.",
            param=name,
            code="invalid_idempotency_key",
        )
    return key


idempotency_key = Field(_read_key, STRING | {"pattern": f"^{_KEY.pattern}$"}).described(
    "Requests with the same key are one."
)


def _retries(value: str | None) -> int:
    if value is None or not (value.isascii() and value.isdigit() and len(value) < 10):
        return 0
    return int(value)
