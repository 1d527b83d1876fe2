"""SIGTERM with streams, tools and a half-sent request: readers get a notice, and nothing counts as a crash."""

import signal
import socket
import time
from collections.abc import Sequence
from typing import Any, Self

from tests.faults.campaigns.base import Campaign
from tests.support.checker import DONE, Seen
from tests.support.scripted_requests import call
from tests.support.server import eventually, script

READERS = 10
NOTICE = b": the server is shutting down"
HALF = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


class Stop(Campaign):
    name = "stop"
    counts = "SIGTERM"
    suite = 5
    night = 100
    env = {"HERMES_MAX_ATTEMPTS": "1"}  # one crash would be one too many

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._slowest_secs = 0.0

    def round(self, wanted: int) -> int:
        grace = int(self.server.env["HERMES_SHUTDOWN_GRACE"])
        readers = [self._reader() for _ in range(READERS)]
        self.post({"input": script({"say": "beside "}, {"say": "others", "pace": 2})})
        eventually(lambda: any(reader.frames for reader in readers), 30, "the first event")
        with socket.create_connection(("127.0.0.1", self.server.port)) as half:
            half.sendall(HALF)
            time.sleep(self.dice.uniform(0, 0.5))  # the moment of the signal is the variable under test
            began = time.monotonic()
            self.server.kill(signal.SIGTERM)
            self._slowest_secs = max(self._slowest_secs, time.monotonic() - began - grace)
        self.join_clients()
        assert "The shutdown hangs" not in self.server.log
        for reader in readers:
            _check_last_frame(reader)
        self.server.env["HERMES_SHUTDOWN_GRACE"] = str(self.dice.choice((0, 1)))
        self.server.start()
        return 1

    def _reader(self) -> Seen:
        words = f"write {self.dice.randrange(5, 60)} words at {self.dice.choice((20, 100))} words per second"
        tool = script({"say": "first "}, call("safe_effect", text=f"safe {self.next_name()}", secs=self.dice.random()))
        return self.read({"input": self.dice.choice((words, tool))})

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        return f"slowest exit {max(leg._slowest_secs for leg in legs):.1f} s after the grace"


def _check_last_frame(reader: Seen) -> None:
    """Whole, or cut behind the notice; never an end that looks whole and is not."""
    if reader.frames:
        is_whole = reader.frames[-1] == DONE and reader.cut is None
        was_cut_with_notice = reader.frames[-1].startswith(NOTICE) and reader.cut is not None
        assert is_whole or was_cut_with_notice, (reader.cut, reader.frames[-1])
