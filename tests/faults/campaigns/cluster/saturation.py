"""All cores saturated by other programs: slow processes keep their leases, and no turn changes hands."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from tests.faults.campaigns.cluster.base import ClusterCampaign
from tests.faults.campaigns.kill import CLIENTS
from tests.support.checker import DONE, Seen
from tests.support.cluster import Cluster
from tests.support.migrated_database import Database
from tests.support.scripted_requests import call
from tests.support.server import script
from tests.support.stored_rows import stored_rows

BURNERS_PER_CORE = 2
SUITE_SECS, NIGHT_SECS = 5, 300
TURN_SECS = 90.0  # a turn of ten seconds, on such a machine


class Saturate(ClusterCampaign):
    name = "saturated cores"
    counts = "seconds of it"
    leg = NIGHT_SECS
    has_bound = False

    def __init__(self, cluster: Cluster, seed: str) -> None:
        super().__init__(cluster, seed)
        self._turns: list[Seen] = []

    @classmethod
    @contextmanager
    def opened(cls, database: Database, home: Path, seed: str) -> Iterator[Self]:
        with super().opened(database, home, seed) as campaign, ExitStack() as stack:
            for _ in range(BURNERS_PER_CORE * (os.cpu_count() or 1)):
                burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                stack.callback(burner.wait)
                stack.callback(burner.kill)
            yield campaign

    @classmethod
    def size(cls, rounds: int) -> int:
        return NIGHT_SECS if rounds >= 100 else SUITE_SECS

    def round(self, wanted: int) -> int:
        began = time.monotonic()
        for _ in range(CLIENTS):
            self._turns.append(self.read(self._asked()))
        self.join_clients(TURN_SECS)
        return min(wanted, max(1, int(time.monotonic() - began)))

    def _asked(self) -> dict[str, Any]:
        """Turns that need several renewals."""
        words = f"write {self.dice.randrange(50, 200)} words at 20 words per second"
        label = f"unsafe {self.next_name()}"
        tool = script({"say": "first "}, call("effect", text=label, secs=self.dice.uniform(2, 8)))
        return {"input": self.dice.choice((words, words, tool))}

    def check(self) -> None:
        assert all(turn.cut is None and turn.frames[-1] == DONE for turn in self._turns)
        attempts = {attempt for (attempt,) in stored_rows(self.server, "response", "attempt")}
        assert attempts == {1}, attempts
        states = {state for (state,) in stored_rows(self.server, "runtimeprocess", "state")}
        assert "lost" not in states, states

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        turns = sum(len(leg._turns) for leg in legs)
        return f"{turns} turns, 0 taken over, with {BURNERS_PER_CORE} busy programs on each core beside"
