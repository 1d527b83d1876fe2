"""What every campaign shares: a server, dice, clients that remember, and the checker at the end."""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.support.checker import (
    History,
    Seen,
    check_all,
    listed,
)
from tests.support.migrated_database import Database
from tests.support.server import Server

SUITE_ROUNDS = 10  # what the suite does, as ``make faults ROUNDS=10`` would
NIGHT_ROUNDS = 500
MAX_CLIENTS = 256
CLIENT_SECS = 60.0  # a client that waits longer for a server that is dead or well hangs


class Campaign(ABC):
    """Faults against one server; the seed decides what is asked and when it is disturbed."""

    name: ClassVar[str]
    counts: ClassVar[str]  # what one fault is
    suite: ClassVar[int]  # how many the suite makes
    night: ClassVar[int]
    leg: ClassVar[int] = 25  # so many on one server: the checker reads all that a server has
    has_bound: ClassVar[bool] = True  # whether its faults are events of their own, so that their number N has a meaning
    env: ClassVar[dict[str, str]] = {}

    def __init__(self, server: Server, seed: str) -> None:
        self.server = server
        self.dice = random.Random(seed)
        self.history = History()
        self.faults = self.checked = 0
        self.asked = 0
        self._threads = ThreadPoolExecutor(MAX_CLIENTS)
        self._running: list[Future[None]] = []

    @classmethod
    def unavailable(cls) -> str:
        """Why it can't run on this machine, or nothing."""
        return ""

    @classmethod
    @contextmanager
    def opened(cls, database: Database, home: Path, seed: str) -> Iterator[Self]:
        """The campaign against a server that it starts, and stops at the end."""
        server = database.server(home, Server, **cls.env)
        try:
            yield cls(server.start(), seed)
        finally:
            server.kill()

    @classmethod
    def size(cls, rounds: int) -> int:
        """As many as the suite makes for each ten rounds, up to the night's count; from there on in its proportion."""
        as_the_suite = min(cls.suite * rounds / SUITE_ROUNDS, cls.night)
        return math.ceil(max(cls.night * rounds / NIGHT_ROUNDS, as_the_suite))

    @abstractmethod
    def round(self, wanted: int) -> int:
        """Disturb the server, ``wanted`` times at most; says how often it did."""

    def settle(self) -> None:  # noqa: B027  # most have nothing left to do
        """The last things clients do when the faults are over."""

    def check(self) -> None:  # noqa: B027
        """What this kind of fault promises beyond the checker's properties."""

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        """The remark of the table about all legs."""
        return ""

    def run(self, faults: int, progress: Callable[[int], None] = lambda done: None) -> None:
        try:
            self._run(faults, progress)
        finally:
            self._threads.shutdown(wait=False)

    def _run(self, faults: int, progress: Callable[[int], None]) -> None:
        while self.faults < faults:
            self.faults += self.round(faults - self.faults)
            progress(self.faults)
        self.settle()
        self.checked = check_all(self.server, self.history)
        unfinished = {body["id"]: body["status"] for body in listed(self.server) if body["status"] != "completed"}
        assert not unfinished, unfinished
        for log in self.logs():
            assert "Traceback" not in log, log
        self.check()

    def logs(self) -> list[str]:
        """Of every process."""
        return [self.server.log]

    def entry(self) -> Server:
        """The process that takes the next request."""
        return self.server

    # -- clients ------------------------------------------------------------------------
    def next_name(self) -> str:
        self.asked += 1
        return str(self.asked)

    def begin(self, work: Callable[..., None], *arguments: Any) -> None:
        self._running.append(self._threads.submit(work, *arguments))

    def read(self, body: dict[str, Any], key: str | None = None) -> Seen:
        """A client that asks for a stream; it runs beside."""
        client = self.history.client(key)
        self.begin(client.read, self.entry(), body)
        return client

    def post(self, body: dict[str, Any], key: str | None = None) -> Seen:
        client = self.history.client(key)
        self.begin(client.post, self.entry(), {**body, "background": True})
        return client

    @property
    def is_busy(self) -> bool:
        return not all(client.done() for client in self._running)

    def join_clients(self, secs: float = CLIENT_SECS) -> None:
        """Whatever went wrong in a client is raised here."""
        for client in self._running:
            client.result(secs)
        self._running.clear()
