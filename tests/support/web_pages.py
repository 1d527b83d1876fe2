"""A web server on a loopback address, and the web as web_fetch sees it from a test."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway_app.tools.support.public_addresses import Address
from gateway_app.tools.support.public_http import PublicWeb

logger = logging.getLogger(__name__)

PUBLIC, PRIVATE = "127.0.0.1", "127.0.0.2"  # both are this machine: which is public, the test says


@dataclass
class WebServer:
    port: int = 0
    asked: list[str] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)  # path -> the whole answer
    stuck: set[str] = field(default_factory=set)  # paths whose connections stay open
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def page(self, path: str, body: bytes | str, kind: str = "text/html", *headers: str) -> None:
        if isinstance(body, str):
            body = body.encode()
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
        self.pages[path] = "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def redirect(self, path: str, target: str) -> None:
        self.pages[path] = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            self.asked.append(path)
            missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            writer.write(self.pages.get(path, missing))
            await writer.drain()
            if path in self.stuck:
                await self.ended.wait()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            logger.info("A client of the pages has left: %r", error)
        finally:
            writer.close()


@asynccontextmanager
async def web_server(address: str = PUBLIC, port: int = 0) -> AsyncIterator[WebServer]:
    pages = WebServer()
    listening = await asyncio.start_server(pages.serve, address, port)
    pages.port = listening.sockets[0].getsockname()[1]
    try:
        yield pages
    finally:
        pages.ended.set()
        listening.close()
        await listening.wait_closed()


class Names:
    """A resolver: the answers for each name in their order; the last one stays."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self._answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self._answers.get(host)
        if found is None:
            raise OSError("unknown")
        if len(found) > 1:
            return [found.pop(0)]
        return [found[0]]


def is_test_public(address: Address) -> bool:
    return str(address) == PUBLIC


def web_of(hosts: Sequence[str], resolve: Callable[..., object]) -> PublicWeb:
    return PublicWeb(hosts, resolve, is_test_public)  # type: ignore[arg-type]
