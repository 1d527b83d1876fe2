"""A cheap client: it stores bytes with their arrival times, and parses them afterwards."""

import asyncio
import json
import re
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from tests.support.server import Server

HOST = "127.0.0.1"
TIMEOUT_SECS = 60
# A long frame comes in several chunks. Events contain no CR, so this matches only sizes of chunks.
_CHUNK_EDGE = re.compile(rb"\r\n[0-9a-f]+\r\n")
_DATA = re.compile(rb"^data: (\{.*\})$", re.MULTILINE)
_WORD = re.compile(rb'"delta":"(\d+)\+(\d+) ".*\n\n')
_RESPONSE_ID = re.compile(rb'"id":"(resp_[^"]+)"')


@dataclass(frozen=True, slots=True)
class Word:
    delay_ms: float
    late_ms: float
    arrived_ns: int


@dataclass
class Download(asyncio.Protocol):
    """One request on its own connection, read to the end."""

    request: bytes
    ended: "asyncio.Future[None]"
    started_ns: int = field(default_factory=time.time_ns)
    arrivals: list[tuple[int, bytes]] = field(default_factory=list)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.arrivals.append((time.time_ns(), data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)

    # -- afterwards ---------------------------------------------------------------------
    @cached_property
    def answer(self) -> bytes:
        whole = b"".join(data for _, data in self.arrivals)
        if not whole.startswith(b"HTTP/1.1 200") or b"\ndata: [DONE]\n" not in whole:
            raise RuntimeError(f"The stream did not end well: {whole[:300]!r} … {whole[-300:]!r}")
        return whole

    @property
    def took_secs(self) -> float:
        return (self.arrivals[-1][0] - self.started_ns) / 1e9

    @property
    def response_id(self) -> str:
        found = _RESPONSE_ID.search(self.answer)
        assert found is not None
        return found[1].decode()

    def events(self) -> list[bytes]:
        return _DATA.findall(_CHUNK_EDGE.sub(b"", self.answer))

    def words(self) -> list[Word]:
        """A word arrives with the last byte of its frame."""
        ends = list(accumulate(len(data) for _, data in self.arrivals))
        found = []
        for word in _WORD.finditer(self.answer):
            arrived_ns = self.arrivals[bisect_left(ends, word.end())][0]
            found.append(Word((arrived_ns - int(word[1])) / 1e6, int(word[2]) / 1e3, arrived_ns))
        return found


async def ask(server: Server, words: int, pace: float) -> Download:
    body = json.dumps({"stream": True, "input": json.dumps({"words": words, "pace": pace})})
    return await _download(server, "POST /v1/responses", body)


async def replay(server: Server, response_id: str) -> Download:
    return await _download(server, f"GET /v1/responses/{response_id}?stream=true", "")


async def _download(server: Server, target: str, body: str) -> Download:
    head = (
        f"{target} HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nAuthorization: Bearer {server.key}\r\n"
        f"Connection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    download = Download((head + body).encode(), loop.create_future())
    transport, _ = await loop.create_connection(lambda: download, HOST, server.port)
    try:
        async with asyncio.timeout(TIMEOUT_SECS):
            await download.ended
    finally:
        transport.close()
    return download
