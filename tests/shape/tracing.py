"""Calls between modules while a real server answers one streamed request, counted in that server."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from tests.support.ports import free_port
from tests.support.server import eventually

RUNS = 5  # of each request; the median leaves out those in which a timer fired
WARM_UP_RUNS = 2  # the first requests import, connect and fill caches
START_SECS = 60  # each call at import is traced too
QUIET_SECS = 1.2  # after the last byte: the end is settled, and the reader is noted, which takes up to a second
SHORT_WORDS = 1
LONG_WORDS = 41
WORDS_PER_SECOND = 40  # slow enough for each delta to be committed and sent by itself
DELTA_LINE = "event: response.output_text.delta"
SERVER_SCRIPT = Path(__file__).with_name("traced_server.py")
FOREIGN_SETTINGS = ("HERMES_", "API_SERVER_", "DATABASE_", "REDIS_", "DJANGO_")
# Background work runs by these clocks; it would be counted with the request.
SLOW_CLOCKS = {"HERMES_SWEEP_SECS": "60", "HERMES_LEASE_SECS": "3600"}


@dataclass(frozen=True)
class Trace:
    deltas: int
    hops: int
    modules: frozenset[str]
    switches: int
    pairs: list[tuple[str, str, int]]


@dataclass(frozen=True)
class Traces:
    """The same two requests several times: an answer of one word, and one of many."""

    short: list[Trace]
    long: list[Trace]

    @property
    def request_hops(self) -> float:
        return median(trace.hops for trace in self.short)

    @property
    def request_modules(self) -> float:
        return median(len(trace.modules) for trace in self.short)

    @property
    def request_switches(self) -> float:
        return median(trace.switches for trace in self.short)

    @property
    def delta_hops(self) -> float:
        more = median(trace.hops for trace in self.long) - self.request_hops
        return more / self._more_deltas()

    @property
    def delta_switches(self) -> float:
        more = median(trace.switches for trace in self.long) - self.request_switches
        return more / self._more_deltas()

    def _more_deltas(self) -> float:
        return median(trace.deltas for trace in self.long) - median(trace.deltas for trace in self.short)


class TracedServer:
    def __init__(self, tree: Path, home: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._tree = tree
        self._home = home
        self._counts_path = home / "counts.json"
        self._env = self._environment()

    def _environment(self) -> dict[str, str]:
        env = {}
        for name, value in os.environ.items():
            if not name.startswith(FOREIGN_SETTINGS):
                env[name] = value
        env |= SLOW_CLOCKS
        env["HERMES_HOME"] = str(self._home)
        env["API_SERVER_PORT"] = self.url.rpartition(":")[2]
        return env

    @contextmanager
    def running(self) -> Iterator[None]:
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=self._tree, env=self._env, check=True)
        serve = [sys.executable, str(SERVER_SCRIPT), str(self._counts_path)]
        log_path = self._home / "server.log"
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(serve, cwd=self._tree, env=self._env, stdout=log, stderr=log)
        try:
            eventually(self._is_up, START_SECS, f"the start of the traced server (see {log_path})")
            yield
        finally:
            self._process.kill()
            self._process.wait()

    def _is_up(self) -> bool:
        assert self._process.poll() is None, (self._home / "server.log").read_text()
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def trace(self, words: int) -> Trace:
        self._take_counts()
        deltas = self._ask(f"Write {words} words at {WORDS_PER_SECOND} words per second.")
        time.sleep(QUIET_SECS)
        counts = self._take_counts()
        pairs = [(caller, callee, count) for caller, callee, count in counts["pairs"]]
        return Trace(deltas, counts["hops"], frozenset(counts["modules"]), counts["switches"], pairs)

    def _ask(self, text: str) -> int:
        key = (self._home / "api_key").read_text().strip()
        headers = {"Authorization": f"Bearer {key}"}
        body = {"input": text, "stream": True}
        deltas = 0
        with httpx.stream("POST", f"{self.url}/v1/responses", json=body, headers=headers, timeout=60) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                if line == DELTA_LINE:
                    deltas += 1
        return deltas

    def _take_counts(self) -> dict[str, Any]:
        self._counts_path.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR1)
        eventually(self._counts_path.exists, what="the counts of the traced server")
        counts: dict[str, Any] = json.loads(self._counts_path.read_text())
        return counts


def trace_requests(tree: Path) -> Traces:
    with tempfile.TemporaryDirectory(prefix="hermes-shape-") as folder:
        server = TracedServer(tree, Path(folder))
        with server.running():
            for _ in range(WARM_UP_RUNS):
                server.trace(SHORT_WORDS)
            short = [server.trace(SHORT_WORDS) for _ in range(RUNS)]
            long = [server.trace(LONG_WORDS) for _ in range(RUNS)]
    return Traces(short, long)
