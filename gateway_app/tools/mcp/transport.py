"""The way to an MCP server, and what can be overheard on it: its end, and what the server said last."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
MAX_SAID_CHARS = 500
MIN_REDACTED_CHARS = 4  # a shorter value is no secret, and its letters are in every message


class Line:
    """One connection: whether it has ended, and the server's last words for the operators."""

    def __init__(self, server: McpServer, on_end: Callable[[], None]) -> None:
        self.server = server
        self.opened = asyncio.Event()  # the child has been started, or could not be
        self.was_ready = False
        self.has_ended = False
        self.is_garbled = False  # something came that is no message
        self.last_words = ""
        self._on_end = on_end

    def end(self) -> None:
        self.has_ended = True
        self._on_end()

    def hear(self, text: str) -> None:
        self.last_words = redacted(self.server, text)[:MAX_SAID_CHARS]


def redacted(server: McpServer, text: str) -> str:
    """Without what the configuration holds in confidence: servers repeat it in their complaints."""
    secrets = [
        *server.env.values(),
        *server.headers.values(),
        *server.url.partition("?")[2].split("&"),
    ]
    secrets += [value.partition(" ")[2] for value in server.headers.values()]
    secrets += [pair.partition("=")[2] for pair in secrets if "=" in pair]
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_REDACTED_CHARS:
            text = text.replace(secret, "***")
    return text


def open_transport(line: Line) -> AbstractAsyncContextManager[Any]:
    return _stdio(line) if line.server.command else _http(line)


@asynccontextmanager
async def _stdio(line: Line) -> AsyncIterator[tuple[Any, Any]]:
    server = line.server
    # The child gets PATH, HOME and the like from us, and its own env: never the keys this process holds.
    parameters = StdioServerParameters(
        command=server.command,
        args=list(server.args),
        env=dict(server.env),
        encoding_error_handler="replace",  # a stray byte costs its line, not the connection
    )
    async with _overheard(line) as errlog, stdio_client(parameters, errlog=errlog) as (read, write):
        yield Watched(read, line), write


@asynccontextmanager
async def _http(line: Line) -> AsyncIterator[tuple[Any, Any]]:
    async def note_status(response: httpx2.Response) -> None:
        # The mcp package reports a 401 and a 500 alike as "an error response".
        if response.request.method == "POST":
            line.hear(
                f"HTTP {response.status_code} {response.reason_phrase}" if response.is_error else ""
            )

    # A stream of notifications may be silent for hours; calls and listings have limits of their own.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECS, write=WRITE_SECS)
    async with (
        httpx2.AsyncClient(
            headers=dict(line.server.headers),
            timeout=timeout,
            event_hooks={"response": [note_status]},
        ) as client,
        streamable_http_client(line.server.url, http_client=client) as (read, write),
    ):
        yield Watched(read, line), write


@asynccontextmanager
async def _overheard(line: Line) -> AsyncIterator[TextIO]:
    """A file for a child's stderr, which must be read or the child stands still; its last line tells why it died."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w") as errlog:
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Stderr(line), os.fdopen(read_end, "rb", buffering=0)
        )
        try:
            yield errlog
        finally:
            pipe.close()


class _Stderr(asyncio.Protocol):
    def __init__(self, line: Line) -> None:
        self._line = line

    def data_received(self, data: bytes) -> None:
        for raw in data.splitlines():
            text = raw.decode(errors="replace").strip()
            if text:
                self._line.hear(text)


class _ReadStream(Protocol):
    async def receive(self) -> Any: ...
    async def aclose(self) -> None: ...


class Watched:
    """The messages of a server, with a word when there will be no more: its session keeps that to itself."""

    def __init__(self, inner: _ReadStream, line: Line) -> None:
        self._inner = inner
        self._line = line

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
