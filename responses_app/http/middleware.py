"""What every HTTP answer has, whichever door gives it: one ASGI middleware."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
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
from responses_app.http.websocket_rejection import EXTENSION, refuse_handshake
from responses_app.protocol.errors import (
    ApiError,
    InvalidRequest,
    OriginNotAllowed,
    RequestInterrupted,
    ServerShuttingDown,
)

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
# Other sites are told nothing either way. Without any referrer, browsers hide a form's origin from our CSRF check.
REFERRER_POLICY_OF_PAGES = (b"referrer-policy", b"same-origin")
SAFE_METHODS = ("GET", "HEAD")
SINGLE_HEADERS = (
    *(b"authorization", b"content-type", b"idempotency-key", b"last-event-id", b"origin"),
    *(b"x-hermes-session-id", b"x-hermes-session-key", b"x-hermes-turn-policy"),
)
STARTS = ("http.response.start", f"{EXTENSION}.start")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class RequestMiddleware:
    """Request id, security headers, CORS, the session key's echo, host check and door, for streams, errors and pages.

    Django checks the Host header of its own requests only; without a check here, a web page
    could rebind its name to a loopback address and read streams.
    """

    def __init__(self, app: Asgi) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        scope = {
            **scope,
            "root_path": "",
        }  # plain Daphne takes it from a header that any client may send
        headers = dict(scope["headers"])
        added = headers_of_every_answer(headers)
        names = {name for name, _ in added} - {b"vary"}
        send = _without_body(send) if scope.get("method") == "HEAD" else send
        is_answered = False

        async def send_with_headers(message: dict[str, Any]) -> None:
            nonlocal is_answered
            is_answered = True
            if message["type"] in STARTS:
                kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
                message = {
                    **message,
                    "headers": kept + (_for_pages(added) if _is_page(kept) else added),
                }
            await send(message)

        try:
            check_headers(scope["headers"])
            if scope.get("method") == "OPTIONS" and b"access-control-request-method" in headers:
                return await _answer_preflight(headers, send_with_headers)
            # Where no key is asked for, the origin is all that tells a stranger's page from the user. And
            # no browser asks beforehand whether it may open a WebSocket.
            if settings.HERMES_AUTH == "off" or scope["type"] == "websocket":
                _check_origin(headers)
            if request_gate.is_closed:
                raise ServerShuttingDown
            read_session_key(_text(headers, SESSION_KEY_HEADER))
        except ApiError as error:
            return await _refuse(error, scope, send_with_headers)
        with request_gate.running():
            try:
                await self.app(scope, receive, send_with_headers)
            except ApiError as error:
                await _refuse(error, scope, send_with_headers)
            except asyncio.CancelledError:
                if is_answered or not request_gate.has_cancelled:
                    raise
                is_repeatable = scope.get("method") in SAFE_METHODS or b"idempotency-key" in headers
                await _refuse(
                    RequestInterrupted(is_repeatable=is_repeatable), scope, send_with_headers
                )


def check_headers(headers: Headers) -> None:
    """What is wrong with a request whatever its path."""
    _check_host(headers)
    _check_single(headers)
    _check_encoding(dict(headers))


def _without_body(send: Any) -> Any:
    """For HEAD: Daphne leaves out only the first piece of a body, and the rest would look like the next answer."""

    async def send_head(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


def headers_of_every_answer(headers: dict[bytes, bytes]) -> Headers:
    return [
        (b"x-request-id", _request_id(headers)),
        *SECURITY_HEADERS,
        *cors_headers(_text(headers, "origin")),
        *_session_key_echo(headers),
    ]


def _is_page(headers: Headers) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/html")
        for name, value in headers
    )


def _for_pages(added: Headers) -> Headers:
    return [
        REFERRER_POLICY_OF_PAGES if name == REFERRER_POLICY_OF_PAGES[0] else (name, value)
        for name, value in added
    ]


def _check_host(headers: Headers) -> None:
    hosts = [value for name, value in headers if name == b"host"]
    # Of two, a proxy may have believed the other.
    domain, _ = split_domain_port(hosts[0].decode("latin-1")) if len(hosts) == 1 else ("", "")
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise ApiError(
            "The request needs one Host header, with a name this server answers to.",
            param="Host",
            code="invalid_host",
        )


def _check_single(headers: Headers) -> None:
    """Of two such headers, a proxy, Django and a consumer may each read another one."""
    names = [name for name, _ in headers]
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
    if (
        origin is not None
        and not is_listed(origin)
        and not is_own(origin, _text(headers, "host") or "")
    ):
        raise OriginNotAllowed(origin)


async def _answer_preflight(headers: dict[bytes, bytes], send: Any) -> None:
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
    return None if value is None else value.decode("latin-1")


def _request_id(headers: dict[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else b"req_" + secrets.token_hex(16).encode()


async def _refuse(error: ApiError, scope: dict[str, Any], send: Any) -> None:
    if scope["type"] == "websocket":
        return await refuse_handshake(error, scope, send)
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(error.body())})
