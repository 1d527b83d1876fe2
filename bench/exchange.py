"""HTTP over a raw protocol: a request, and what came back with the time of each arrival.

Everything else is worked out after the measurement, so that the client costs next to nothing during it.
"""

import asyncio
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from bench.wire import age_ms, now_us

# A long frame comes in several chunks. Neither SSE frames nor JSON contain CR, so this matches only sizes of chunks.
_CHUNK_EDGE = re.compile(rb"\r\n[0-9a-fA-F]+\r\n")
_DELTA = re.compile(rb'"(?:delta|content)": ?"((?:\d{9} )+)"')
_STAMP = re.compile(rb"(\d{9}) ")
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_RESPONSE_ID = re.compile(rb'"id": ?"(resp_[^"]+)"')
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Token:
    sent_us: int
    arrived_us: int

    @property
    def delay_ms(self) -> float:
        return (self.arrived_us - self.sent_us) / 1000


@dataclass
class Exchange:
    request: bytes
    ended: "asyncio.Future[None]"
    began: "asyncio.Future[None] | None" = None  # set where the first bytes of a body are waited for
    marker: bytes = b""  # what these bytes contain
    started_us: int = 0
    ended_us: int = 0
    arrivals: list[tuple[int, bytes]] = field(default_factory=list)

    def note(self, data: bytes) -> None:
        self.arrivals.append((now_us(), data))
        if self.began is not None and self.marker in data and not self.began.done():
            self.began.set_result(None)

    def end(self) -> None:
        if not self.ended.done():
            self.ended_us = now_us()
            self.ended.set_result(None)

    # -- afterwards ---------------------------------------------------------------------
    @cached_property
    def received(self) -> bytes:
        return b"".join(data for _, data in self.arrivals)

    @property
    def status(self) -> int:
        return int(self.received[9:12] or 0)

    def check(self, marker: bytes) -> None:
        """It was answered, and up to its end."""
        if self.status != 200 or marker not in self.received:
            raise RuntimeError(f"A bad response: {self.received[:400]!r} … {self.received[-200:]!r}")

    @property
    def is_whole_stream(self) -> bool:
        """OpenAI's Responses stream ends with its terminal event, every other one with ``[DONE]``."""
        tail = self.received[-4000:]
        return b"[DONE]" in tail or b"response.completed" in self.received[-40_000:]

    @property
    def response_id(self) -> str:
        """Also of a stream that goes on, so it is not taken from ``received``, which is kept."""
        received = b"".join(data for _, data in self.arrivals)
        found = _RESPONSE_ID.search(received)
        if found is None:
            raise RuntimeError(f"No response id: {received[:400]!r}")
        return found[1].decode()

    def events(self) -> int:
        return _CHUNK_EDGE.sub(b"", self.received).count(b"\ndata: {")

    @cached_property
    def tokens(self) -> list[Token]:
        """A token arrives with the last byte of its delta."""
        ends = list(accumulate(len(data) for _, data in self.arrivals))
        found = []
        for delta in _DELTA.finditer(self.received):
            arrived_us = self.arrivals[bisect_left(ends, delta.end())][0]
            for stamped in _STAMP.findall(delta[1]):
                age_us = round(age_ms(int(stamped), arrived_us) * 1000)
                found.append(Token(arrived_us - age_us, arrived_us))
        return found


class Connection(asyncio.Protocol):
    """One connection, one exchange after another."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._tail = b""
        self._expected: int | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def start(self, exchange: Exchange) -> None:
        assert self.transport is not None
        self._exchange = exchange
        self._tail = b""
        self._expected = None
        self._received = 0
        exchange.started_us = now_us()
        self.transport.write(exchange.request)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        exchange.note(data)
        if len(exchange.arrivals) == 1:
            self._read_head(data)
        self._received += len(data)
        self._tail = data[-5:] if len(data) >= 5 else (self._tail + data)[-5:]
        if self._expected is not None:
            if self._received >= self._expected:
                self._end()
        elif self._tail == LAST_CHUNK:
            self._end()

    def _read_head(self, data: bytes) -> None:
        head_bytes = data.find(b"\r\n\r\n") + 4
        length = _LENGTH.search(data[:head_bytes])
        if length is not None:
            self._expected = head_bytes + int(length[1])

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._end()

    def _end(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
