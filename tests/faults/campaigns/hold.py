"""Many streams at once, for a while: every word arrives, and the server's memory stays what it was."""

import time
from collections.abc import Sequence
from typing import Any, Self

from tests.faults.campaigns.base import Campaign
from tests.support.checker import DONE, Seen
from tests.support.raw_http import resident_bytes
from tests.support.server import text

WORDS_PER_SEC = 10
SAMPLE_SECS = 0.5
FLAT = 0.1  # of the memory, between any two moments of the second half of what they all run
SUITE_SECS, NIGHT_SECS = 20, 300


class Hold(Campaign):
    name = "hold"
    counts = "streams held"
    suite = 50
    night = 200
    leg = 200
    has_bound = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._secs = 0
        self._held: list[Seen] = []
        self._sizes: list[int] = []

    @classmethod
    def size(cls, rounds: int) -> int:
        return cls.night if rounds >= 100 else cls.suite

    def round(self, wanted: int) -> int:
        """All at once: half of them would be no hold."""
        self._secs = NIGHT_SECS if wanted == self.night else SUITE_SECS
        words = self._secs * WORDS_PER_SEC
        asked = {"input": f"write {words} words at {WORDS_PER_SEC} words per second"}
        self._held = [self.read(asked) for _ in range(wanted)]
        while self.is_busy and not any(client.frames[-1:] == [DONE] for client in self._held):
            self._sizes.append(resident_bytes(self.server))  # until the first ends: all at once, they take more
            time.sleep(SAMPLE_SECS)
        self.join_clients()
        return wanted

    def check(self) -> None:
        words = self._secs * WORDS_PER_SEC
        for client in self._held:
            assert client.cut is None
            assert client.frames[-1] == DONE
            assert len(text(self.server.body(client.response_id or "")).split()) == words
        low, high = self._later_sizes()
        assert high - low <= FLAT * low, self.remark([self])

    def _later_sizes(self) -> tuple[int, int]:
        later = self._sizes[len(self._sizes) // 2 :]
        return min(later), max(later)

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        [(secs, (low, high))] = [(leg._secs, leg._later_sizes()) for leg in legs]
        return f"for {secs} s; memory {low / 1e6:.0f} to {high / 1e6:.0f} MB in the second half"
