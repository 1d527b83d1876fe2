"""The product's application, with paths beside it that do what no application should.

Named by ``TEST_ASGI_APPLICATION``. What happened to a path is written to a file of its name under ``HERMES_HOME``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from hermes_site.asgi import application as product
from responses_app.streaming.base import HttpConsumer

Send = Callable[[dict[str, Any]], Awaitable[None]]
FLOOD_CHUNKS = 3200
CHUNK_BYTES = 16_384


def note(name: str, what: object) -> None:
    (Path(settings.HERMES_HOME) / name).write_text(str(what))


async def start(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})


async def raise_before_the_start(send: Send) -> None:
    raise RuntimeError("unruly, early")


async def raise_after_the_start(send: Send) -> None:
    await start(send)
    raise RuntimeError("unruly, late")


async def return_before_the_start(send: Send) -> None:
    pass


async def return_after_the_start(send: Send) -> None:
    await start(send)


async def stay_for_ever(send: Send) -> None:
    """Deaf to the disconnect."""
    await start(send)
    try:
        await asyncio.Event().wait()
    finally:
        note("stay_for_ever", "killed")


async def flood(send: Send) -> None:
    """50 MiB; each chunk is an object of its own, or the memory they cost would not show."""
    await start(send)
    for number in range(FLOOD_CHUNKS):
        await send({"type": "http.response.body", "body": b"%16384d" % number, "more_body": True})
        if number % 16 == 0:
            note("flood", number * CHUNK_BYTES)
    await send({"type": "http.response.body"})


async def one_message(send: Send, size: int) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": bytes(size)})


class BrokenStream(HttpConsumer):
    """One of the product's own, in which something unforeseen fails."""

    async def respond(self, body: bytes) -> None:
        await self.start_stream([])
        await self.send_chunk(b"begun")
        raise RuntimeError("unruly, within a stream")


UNRULY = {
    f"/{play.__name__}": play
    for play in (
        raise_before_the_start,
        raise_after_the_start,
        return_before_the_start,
        return_after_the_start,
        stay_for_ever,
        flood,
    )
}


async def application(scope: dict[str, Any], receive: Any, send: Send) -> None:
    path = scope.get("path", "")
    if path in UNRULY:
        await UNRULY[path](send)
    elif path == "/broken_stream":
        await BrokenStream.as_asgi()(scope, receive, send)
    elif path.startswith("/bytes/"):
        await one_message(send, int(path.removeprefix("/bytes/")))
    else:
        await product(scope, receive, send)
