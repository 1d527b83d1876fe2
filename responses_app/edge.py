"""What every HTTP answer has, whichever door gives it: one ASGI middleware."""

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from responses_app.errors import ApiError

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class Edge:
    """Request id, security headers and the host check, for streams, errors and pages alike.

    Django checks the Host header of its own requests only; without a check here, a web page
    could rebind its name to a loopback address and read streams.
    """

    def __init__(self, app: Asgi) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        added = [(b"x-request-id", _request_id(headers)), *SECURITY_HEADERS]
        names = {name for name, _ in added}

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
                message = {**message, "headers": kept + added}
            await send(message)

        if not _is_allowed(headers.get(b"host", b"")):
            return await _refuse_host(send_with_headers)
        return await self.app(scope, receive, send_with_headers)


def _request_id(headers: dict[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else b"req_" + secrets.token_hex(16).encode()


def _is_allowed(host: bytes) -> bool:
    domain, _ = split_domain_port(host.decode("latin-1"))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


async def _refuse_host(send: Any) -> None:
    error = ApiError("The Host header names a host this server does not serve.", param="Host", code="invalid_host")
    await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": orjson.dumps(error.body())})
