"""Many streams at once, for a while: every word arrives, and the server's memory stays what it was."""

import time
from typing import Any

from tests.campaigns.base import Campaign
from tests.checker import DONE, Seen
from tests.harness import text
from tests.raw_http import resident_bytes

WORDS_PER_SEC = 10
SAMPLE_SECS = 0.5
FLAT = 0.1  # of the memory, between any two moments of the second half
SUITE_SECS, NIGHT_SECS = 20, 300


class Hold(Campaign):
    name = "hold"
    counts = "streams held"
    suite = 50
    night = 200
    leg = 200

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
        while self.is_busy:
            self._sizes.append(resident_bytes(self.server))
            time.sleep(SAMPLE_SECS)
        self.join_clients()
        return wanted

    def check(self) -> str:
        words = self._secs * WORDS_PER_SEC
        for client in self._held:
            assert client.cut is None
            assert client.frames[-1] == DONE
            assert len(text(self.server.body(client.response_id or "")).split()) == words
        later = self._sizes[len(self._sizes) // 2 :]
        assert max(later) - min(later) <= FLAT * min(later), self._sizes
        return f"{self._secs} s; memory {min(later) / 1e6:.0f} to {max(later) / 1e6:.0f} MB in the second half"
