"""Connections to a model's server, with or without a proxy, that notice a peer that is gone.

The SDK builds requests and reads errors; aiohttp carries the bytes, because its parser is in C.
"""

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from gateway_app.providers.openai.transport_errors import as_httpx, httpx_errors

logger = logging.getLogger(__name__)

# Below the idle limit of the usual proxies, so that they rarely close first.
KEEPALIVE_EXPIRY_SECS = 30.0
# The SDK reads an error to its end, however long it is; only its first characters are of use.
MAX_ERROR_BYTES = 1_000_000
MAX_HEAD_BYTES = (
    64 * 1024
)  # of a header; aiohttp's own limit of 8 KB is below some proxies' cookies
PIECE_BYTES = 64 * 1024  # of a request; the write limit counts from piece to piece
FRESH_CONNECTION = {"Connection": "close"}  # headers of a request with a connection of its own
# An idle peer is probed after KEEPIDLE seconds, then KEEPCNT times every KEEPINTVL seconds. Without
# the last option, data that the peer does not acknowledge is sent again for a quarter of an hour.
_PROBES = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,  # milliseconds
}
# In the extensions of a response: its body, which is read without the layers of the HTTP client.
BODY = "hermes.body"
_ACCEPTED_ENCODINGS = "gzip, deflate"  # those that need no further package


class Transport(httpx2.AsyncBaseTransport):
    """Connections that are reused, and new ones for retries: a reused one may be dead."""

    def __init__(self, base_url: str) -> None:
        self._proxy = proxy_for(base_url)
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        received = await self.send(RequestHead(request), request.content)
        return await as_response(received)

    async def aclose(self) -> None:
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def send(self, head: "RequestHead", content: bytes) -> aiohttp.ClientResponse:
        body = None
        if content:
            body = _RequestBody(content, head.write_secs)
        with httpx_errors():
            return await self._session(head).request(
                head.method,
                head.address,
                headers=head.headers,
                data=body,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=head.timeout,
            )

    def _session(self, head: "RequestHead") -> aiohttp.ClientSession:
        if head.headers.get("connection") == FRESH_CONNECTION["Connection"]:
            if self._fresh is None:
                self._fresh = _new_session(force_close=True)
            return self._fresh
        if self._kept is None:
            self._kept = _new_session(force_close=False)
        return self._kept


class RequestHead:
    """Everything of a request but its body; it may be sent again with another one."""

    def __init__(self, request: httpx2.Request) -> None:
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        self.method = request.method
        # It was encoded before; credentials in it are in a header by now.
        self.address = URL(str(request.url.copy_with(userinfo=b"")), encoded=True)
        self.headers = dict(request.headers)  # their names are in lower case
        self.headers.setdefault("accept-encoding", _ACCEPTED_ENCODINGS)
        self.headers.pop("content-length", None)
        self.timeout = aiohttp.ClientTimeout(total=None, connect=limits.get("connect"))
        self.write_secs = limits.get("write")

    def as_request(self) -> httpx2.Request:
        """For errors, which name their request."""
        return httpx2.Request(self.method, str(self.address), headers=self.headers)


class ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, decompressed."""

    def __init__(self, received: aiohttp.ClientResponse) -> None:
        self._received = received
        self._content = received.content
        self._loop = asyncio.get_running_loop()
        # What has arrived; a response without a body has no such buffer.
        self._chunks: deque[bytes] = getattr(received.content, "_buffer", deque())
        self.content_type = received.headers.get("content-type", "")

    async def read(self) -> bytes:
        """Everything that has arrived; waits for the next bytes, and is empty at the end."""
        while (piece := self.read_now()) is None:
            await self._content._wait("read")
        return piece

    def read_now(self) -> bytes | None:
        """Everything that has arrived: None if nothing has, and empty at the end."""
        content = self._content
        chunks = self._chunks
        if not (chunks or content.is_eof() or content.exception()):
            return None
        if len(chunks) > 1:
            # aiohttp takes each of them with ten calls; a fast server sends one for each word.
            whole = b"".join(chunks)
            chunks.clear()
            chunks.append(whole)
        try:
            return content.read_nowait()
        except (aiohttp.ClientError, OSError) as error:
            raise as_httpx(error) from error

    def on_arrival(self, callback: Callable[["asyncio.Future[None]"], None]) -> None:
        """Call back once, from the event loop, when ``read_now`` has something."""
        arrival: asyncio.Future[None] = self._loop.create_future()
        arrival.add_done_callback(callback)
        self._content._waiter = arrival

    def forget_callback(self) -> None:
        self._content._waiter = None

    @property
    def is_at_end(self) -> bool:
        return self._content.at_eof()

    def fail(self, failure: Exception) -> None:
        """End the read that waits now, and every later one."""
        self._content.set_exception(failure)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while piece := await self.read():
            yield piece

    async def aclose(self) -> None:
        """The connection of a body that was not read to its end is closed with it."""
        self._received.close()
        await asyncio.sleep(0)  # in which the event loop closes it


class _RequestBody(aiohttp.Payload):
    """The body of a request, with a limit of the time in which the peer takes each piece."""

    _autoclose = True  # it holds no file

    def __init__(self, content: bytes, write_secs: float | None) -> None:
        super().__init__(content, content_type="application/json")
        self._size = len(content)
        self._write_secs = write_secs

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        content: bytes = self._value
        return content.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for start in range(0, len(self._value), PIECE_BYTES):
            async with asyncio.timeout(self._write_secs):
                await writer.write(self._value[start : start + PIECE_BYTES])
                await writer.drain()


async def as_response(received: aiohttp.ClientResponse) -> httpx2.Response:
    """For the SDK; an error is read."""
    body = ResponseBody(received)
    extensions: dict[str, Any] = {"http_version": b"HTTP/1.1", BODY: body}
    if received.connection is not None:  # it is given back as soon as the body has arrived
        extensions["network_stream"] = received.connection.transport
    if received.reason:
        extensions["reason_phrase"] = received.reason.encode()
    headers = httpx2.Headers(received.raw_headers)
    headers.pop("content-encoding", None)
    response = httpx2.Response(received.status, headers=headers, stream=body, extensions=extensions)
    if response.is_success:
        return response
    return await with_limited_error(response)


async def with_limited_error(response: httpx2.Response) -> httpx2.Response:
    """The same error, decompressed and read; the limit is of the decompressed bytes."""
    body = bytearray()
    try:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_ERROR_BYTES:
                    break
    except httpx2.HTTPError as error:  # the status counts, also without its explanation
        logger.info("The explanation of a %d ends early: %r", response.status_code, error)
    headers = response.headers.copy()
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    return httpx2.Response(
        response.status_code,
        headers=headers,
        content=bytes(body[:MAX_ERROR_BYTES]),
        extensions=response.extensions,
    )


def proxy_for(base_url: str) -> str | None:
    """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

    The HTTP client would read them for every request, in a thread, and not know ALL_PROXY.
    """
    address = urlsplit(base_url)
    if proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        return f"http://{proxy}"
    return proxy


def _new_session(*, force_close: bool) -> aiohttp.ClientSession:
    keepalive_secs: float | None = KEEPALIVE_EXPIRY_SECS
    if force_close:
        keepalive_secs = None
    connector = aiohttp.TCPConnector(
        limit=0,  # none: the slots of turns limit the requests
        ssl=_ssl_context(),
        force_close=force_close,
        keepalive_timeout=keepalive_secs,
        socket_factory=_probing_socket,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        max_field_size=MAX_HEAD_BYTES,
        max_line_size=MAX_HEAD_BYTES,
    )


def _probing_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A peer that vanished without closing is noticed after about a minute."""
    family, kind, protocol, _, _ = address
    connection = socket.socket(family, kind, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


@cache
def _ssl_context() -> ssl.SSLContext:
    """It takes 20 ms to read the certificates."""
    return httpx2.create_ssl_context()
