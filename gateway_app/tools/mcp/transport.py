"""The transport to an MCP server: it reports its end, and keeps the server's last error output."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from gateway_app.config.mcp import McpServer

logger = logging.getLogger(__name__)

CONNECT_SECS = 10.0
WRITE_SECS = 30.0
MAX_ERROR_OUTPUT_CHARS = 500
MIN_REDACTED_CHARS = 4  # a shorter value is no secret, and its letters are in every message


class Transport:
    """One connection: whether it has ended, and the server's last error output for the operators."""

    def __init__(self, server: McpServer, on_end: Callable[[], None]) -> None:
        self.server = server
        self.opened = asyncio.Event()  # the child has been started, or could not be
        self.was_ready = False
        self.has_ended = False
        self.is_garbled = False  # something came that is no message of the protocol
        self.error_output = ""  # the last line
        self._on_end = on_end

    def end(self) -> None:
        self.has_ended = True
        self._on_end()

    def keep_error_output(self, text: str) -> None:
        self.error_output = redacted(self.server, text)[:MAX_ERROR_OUTPUT_CHARS]


def redacted(server: McpServer, text: str) -> str:
    """Without the secrets of the configuration, which servers repeat in their errors."""
    secrets = list(server.env.values())
    secrets += server.url.partition("?")[2].split("&")
    for value in server.headers.values():
        secrets.append(value)
        secrets.append(value.partition(" ")[2])  # without Bearer or Basic
    secrets += [pair.partition("=")[2] for pair in secrets if "=" in pair]
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_REDACTED_CHARS:
            text = text.replace(secret, "***")
    return text


def open_transport(transport: Transport) -> AbstractAsyncContextManager[Any]:
    if transport.server.command:
        return _stdio(transport)
    return _http(transport)


@asynccontextmanager
async def _stdio(transport: Transport) -> AsyncIterator[tuple[Any, Any]]:
    server = transport.server
    # The child gets PATH, HOME and the like, and its own env, but never the keys of this process.
    parameters = StdioServerParameters(
        command=server.command,
        args=list(server.args),
        env=dict(server.env),
        encoding_error_handler="replace",  # a stray byte costs its line, not the connection
    )
    async with (
        _error_log(transport) as errlog,
        stdio_client(parameters, errlog=errlog) as (read, write),
    ):
        yield Watched(read, transport), write


@asynccontextmanager
async def _http(transport: Transport) -> AsyncIterator[tuple[Any, Any]]:
    async def note_status(response: httpx2.Response) -> None:
        # The mcp package reports a 401 and a 500 alike as "an error response".
        if response.request.method == "POST":
            status = ""
            if response.is_error:
                status = f"HTTP {response.status_code} {response.reason_phrase}"
            transport.keep_error_output(status)

    # A stream of notifications may be silent for hours; calls and listings have their own limits.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECS, write=WRITE_SECS)
    async with (
        httpx2.AsyncClient(
            headers=dict(transport.server.headers),
            timeout=timeout,
            event_hooks={"response": [note_status]},
        ) as client,
        streamable_http_client(transport.server.url, http_client=client) as (read, write),
    ):
        yield Watched(read, transport), write


@asynccontextmanager
async def _error_log(transport: Transport) -> AsyncIterator[TextIO]:
    """A file for a child's stderr, which must be read, or the child blocks; its last line is kept."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w") as errlog:
        reading = os.fdopen(read_end, "rb", buffering=0)
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(partial(_Stderr, transport), reading)
        try:
            yield errlog
        finally:
            pipe.close()


class _Stderr(asyncio.Protocol):
    def __init__(self, transport: Transport) -> None:
        self._line = transport

    def data_received(self, data: bytes) -> None:
        for raw in data.splitlines():
            text = raw.decode(errors="replace").strip()
            if text:
                self._line.keep_error_output(text)


class _ReadStream(Protocol):
    async def receive(self) -> Any: ...
    async def aclose(self) -> None: ...


class Watched:
    """The messages of a server; reports their end, which the session of the mcp package does not."""

    def __init__(self, inner: _ReadStream, transport: Transport) -> None:
        self._inner = inner
        self._line = transport

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except Exception:
            self._line.end()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
