"""Servers that are stopped by a signal, and clients that read while it happens."""

import signal
import threading
import time
from typing import Any

import httpx

from tests.support.server import Server, created_id, script, streaming

EXIT_SECS = 2.0  # after the grace
COMMENT = b": the server is shutting down"
GOES_ON = script({"say": "before "}, {"gate": "later"}, {"say": "after"})


class Reader(threading.Thread):
    """A client that reads until it is cut, and remembers how that was."""

    def __init__(self, server: Server, **body: Any) -> None:
        super().__init__(daemon=True)
        self.server, self.body = server, body
        self.seen: list[bytes] = []
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with streaming(self.server, **self.body) as (_, received):
                for frame in received:
                    self.seen.append(frame)
        except httpx.TransportError as error:
            self.error = error

    @property
    def response_id(self) -> str:
        return created_id(self.seen[0])

    def has_read(self, what: bytes) -> bool:
        return any(what in frame for frame in self.seen)

    def was_cut_with_notice(self) -> bool:
        self.join(10)
        is_cut = isinstance(self.error, httpx.RemoteProtocolError | httpx.ReadError)
        return is_cut and self.seen[-1].startswith(COMMENT) and not self.has_read(b"[DONE]")


def stop_with_signal(server: Server, number: int = signal.SIGTERM) -> float:
    """Send the signal, wait for the exit; says how long it took."""
    assert server.process is not None
    began = time.monotonic()
    server.process.send_signal(number)
    server.process.wait(40)
    return time.monotonic() - began
