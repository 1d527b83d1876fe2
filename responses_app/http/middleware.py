"""One ASGI middleware for every request: HTTP and WebSocket, streams, errors and pages."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from random import getrandbits
from typing import Any

import orjson
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from responses_app.http.cors import (
    Headers,
    cors_headers,
    is_listed,
    is_own,
    preflight_headers,
)
from responses_app.http.request_gate import request_gate
from responses_app.http.session_key import SESSION_KEY_HEADER, read_session_key
from responses_app.http.websocket_rejection import EXTENSION, reject_handshake
from responses_app.protocol.errors import (
    ApiError,
    InvalidRequest,
    OriginNotAllowed,
    RequestInterrupted,
    ServerShuttingDown,
)

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
REFERRER_POLICY = b"referrer-policy"
# Without any referrer, browsers hide the origin of a form from our CSRF check.
PAGE_REFERRER_POLICY = b"same-origin"
SAFE_METHODS = ("GET", "HEAD")
SINGLE_HEADERS = (
    b"authorization",
    b"content-type",
    b"idempotency-key",
    b"last-event-id",
    b"origin",
    b"x-hermes-session-id",
    b"x-hermes-session-key",
    b"x-hermes-turn-policy",
)
STARTS = ("http.response.start", f"{EXTENSION}.start")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class RequestMiddleware:
    """Request id, security headers, CORS, the session key's echo, the host check, the request gate.

    Django checks the Host header of its own requests only. Without a check here, a web page could
    rebind its name to a loopback address and read streams.
    """

    def __init__(self, app: Asgi) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        # Plain Daphne takes the root path from a header that any client may send.
        scope = scope | {"root_path": ""}
        headers = dict(scope["headers"])
        if scope.get("method") == "HEAD":
            send = _without_body(send)
        response = _ResponseHeaders(common_headers(headers), send)
        try:
            check_headers(scope["headers"])
            if scope.get("method") == "OPTIONS" and b"access-control-request-method" in headers:
                return await _send_preflight(headers, response.send)
            # Without keys, only the origin distinguishes the page of another site from the user's
            # own. And browsers open a WebSocket without a preflight.
            if settings.HERMES_AUTH == "off" or scope["type"] == "websocket":
                _check_origin(headers)
            if request_gate.is_closed:
                raise ServerShuttingDown
            read_session_key(_text(headers, SESSION_KEY_HEADER))
        except ApiError as error:
            return await _send_error(error, scope, response.send)
        with request_gate.running():
            try:
                await self.app(scope, receive, response.send)
            except ApiError as error:
                await _send_error(error, scope, response.send)
            except asyncio.CancelledError:
                if response.has_started or not request_gate.has_cancelled:
                    raise
                is_repeatable = scope.get("method") in SAFE_METHODS or b"idempotency-key" in headers
                interrupted = RequestInterrupted(is_repeatable=is_repeatable)
                await _send_error(interrupted, scope, response.send)


class _ResponseHeaders:
    """Adds the common headers to a response as it starts."""

    def __init__(self, added: Headers, send: Send) -> None:
        self._added = added
        self._names = {name for name, _ in added} - {b"vary"}
        self._send = send
        self.has_started = False

    async def send(self, message: dict[str, Any]) -> None:
        self.has_started = True
        if message["type"] in STARTS:
            message = message | {"headers": self._merged(message["headers"])}
        await self._send(message)

    def _merged(self, own: Headers) -> Headers:
        merged: Headers = []
        is_page = False
        for name, value in own:
            lowered = name.lower()
            if lowered not in self._names:
                merged.append((name, value))
            if lowered == b"content-type" and value.startswith(b"text/html"):
                is_page = True
        for name, value in self._added:
            if is_page and name == REFERRER_POLICY:
                value = PAGE_REFERRER_POLICY
            merged.append((name, value))
        return merged


def check_headers(headers: Headers) -> None:
    """What no request may have, whatever its path."""
    _check_host(headers)
    _check_single(headers)
    _check_encoding(dict(headers))


def common_headers(headers: dict[bytes, bytes]) -> Headers:
    """For the response to a request with these headers."""
    common: Headers = [
        (b"x-request-id", _request_id(headers)),
        (b"x-content-type-options", b"nosniff"),
        (REFERRER_POLICY, b"no-referrer"),
    ]
    common += cors_headers(_text(headers, "origin"))
    common += _session_key_echo(headers)
    return common


def _without_body(send: Send) -> Send:
    """For HEAD: Daphne drops only the first piece of a body, and the rest confuses clients."""

    async def send_head(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            message = message | {"body": b""}
        await send(message)

    return send_head


def _check_host(headers: Headers) -> None:
    hosts = [value for name, value in headers if name == b"host"]
    domain = ""
    if len(hosts) == 1:  # of two, a proxy may have used the other
        domain, _ = split_domain_port(hosts[0].decode("latin-1"))
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise ApiError(
            "The request needs one Host header, with a name this server answers to.",
            param="Host",
            code="invalid_host",
        )


def _check_single(headers: Headers) -> None:
    """Of two such headers, a proxy, Django and a consumer might each read another one."""
    names = [name for name, _ in headers]
    if len(set(names)) == len(names):
        return
    for name in SINGLE_HEADERS:
        if names.count(name) > 1:
            title = name.decode().title()
            raise ApiError(
                f"The request has more than one {title} header.",
                param=title,
                code="duplicate_header",
            )


def _check_encoding(headers: dict[bytes, bytes]) -> None:
    if headers.get(b"content-encoding", b"").strip().lower() not in (b"", b"identity"):
        raise ApiError(
            "Compressed bodies are not read. Send the body as it is, without Content-Encoding.",
            param="Content-Encoding",
            code="unsupported_encoding",
            status=415,
        )


def _check_origin(headers: dict[bytes, bytes]) -> None:
    origin = _text(headers, "origin")
    if origin is None or is_listed(origin):
        return
    if not is_own(origin, _text(headers, "host") or ""):
        raise OriginNotAllowed(origin)


async def _send_preflight(headers: dict[bytes, bytes], send: Send) -> None:
    origin = _text(headers, "origin") or ""
    if not is_listed(origin):
        raise OriginNotAllowed(origin)
    allowed = preflight_headers(_text(headers, "access-control-request-headers") or "")
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": allowed})
    await send({"type": "http.response.body", "body": b""})


def _session_key_echo(headers: dict[bytes, bytes]) -> Headers:
    given = headers.get(SESSION_KEY_HEADER.lower().encode())
    if given is None:
        return []
    try:
        read_session_key(given.decode("latin-1"))
    except InvalidRequest:
        return []
    return [(SESSION_KEY_HEADER.lower().encode(), given)]


def _text(headers: dict[bytes, bytes], name: str) -> str | None:
    value = headers.get(name.lower().encode())
    if value is None:
        return None
    return value.decode("latin-1")


def _request_id(headers: dict[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id", b"")
    if _REQUEST_ID.fullmatch(given):
        return given
    return b"req_%032x" % getrandbits(128)  # unique, and no secret


async def _send_error(error: ApiError, scope: dict[str, Any], send: Send) -> None:
    if scope["type"] == "websocket":
        return await reject_handshake(error, scope, send)
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(error.body())})
