"""The kernel's clocks: CPU and memory of a process and its descendants, and the work of each core."""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.wire import now_us

TICK_SECS = 1 / os.sysconf("SC_CLK_TCK")
SAMPLE_SECS = 0.05
PROC = Path("/proc")
# Columns of a core in /proc/stat: user, nice, system and steal; waits and interrupts are no work of a process.
BUSY_COLUMNS = (1, 2, 3, 8)


def cores() -> tuple[int, int]:
    """The core of the server, and the core of the client and the model; on one core they are the same."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for parent in found:
        found.extend(_children(parent))
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in (PROC / str(pid) / "task").iterdir():
            children.extend(int(child) for child in (task / "children").read_text().split())
    except OSError:  # it has ended meanwhile
        return children
    return children


def cpu_secs(pids: Iterable[int]) -> float:
    """User and system time of the processes, their descendants, and the descendants that have ended."""
    ticks = 0
    for pid in pids:
        for member in tree(pid):
            ticks += _ticks(member)
    return ticks * TICK_SECS


def _ticks(pid: int) -> int:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    own_and_waited_for = fields[11:15]
    return sum(map(int, own_and_waited_for))


def memory_bytes(pids: Iterable[int], kind: str = "Pss") -> int:
    """Of the processes and their descendants: ``Pss`` counts a page that three share as a third, ``Rss`` whole."""
    total = 0
    for pid in pids:
        for member in tree(pid):
            total += _rollup(member, kind)
    return total


def _rollup(pid: int, kind: str) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    return 0


def core_busy_secs(core: int) -> float:
    for line in (PROC / "stat").read_text().splitlines():
        if line.startswith(f"cpu{core} "):
            fields = line.split()
            return sum(int(fields[column]) for column in BUSY_COLUMNS) * TICK_SECS
    return 0.0


class CpuSamples:
    """The CPU of processes at many moments, read by a thread while something else is measured."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._samples: list[tuple[int, float]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "CpuSamples":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._is_over.wait(SAMPLE_SECS):
            self._samples.append((now_us(), cpu_secs(self._pids)))

    def between(self, opened_us: float, closed_us: float) -> float:
        """Per second of the window, times its length: its first and last sample lie just inside it."""
        inside = [(at, secs) for at, secs in self._samples if opened_us <= at <= closed_us]
        if len(inside) < 2:
            return 0.0
        (first_at, first), (last_at, last) = inside[0], inside[-1]
        return (last - first) * (closed_us - opened_us) / (last_at - first_at)


@dataclass(frozen=True)
class Reading:
    """What the clocks show at one moment."""

    server_secs: float
    helper_secs: float  # the client, the model and the harness, which share a core
    server_core_secs: float
    client_core_secs: float

    @classmethod
    def now(cls, server: Iterable[int], helpers: Iterable[int]) -> "Reading":
        server_core, client_core = cores()
        return cls(cpu_secs(server), cpu_secs(helpers), core_busy_secs(server_core), core_busy_secs(client_core))


@dataclass(frozen=True)
class Work:
    """What happened between two readings."""

    server_secs: float
    foreign_share: float  # of the server's core, by processes that are no part of this
    helper_share: float  # of the client's core, by the client and the model: near 1 the benchmark measures these


def work_between(before: Reading, after: Reading, took_secs: float, *, is_server_on_its_core: bool = True) -> Work:
    server = after.server_secs - before.server_secs
    helpers = after.helper_secs - before.helper_secs
    foreign = after.server_core_secs - before.server_core_secs - server
    if not is_server_on_its_core or cores()[0] == cores()[1]:
        foreign = after.client_core_secs - before.client_core_secs - server - helpers
    return Work(server, max(0.0, foreign / took_secs), helpers / took_secs)
