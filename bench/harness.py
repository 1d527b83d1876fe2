"""Starts the model, the client and the targets, and measures one job with the kernel's clocks around it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.clocks import CpuSamples, Reading, cores, cpu_secs, work_between
from bench.targets import ROOT, Direct, Target, answers, free_port, pinned, stop

Figures = dict[str, float]
MODEL_START_SECS = 20.0
QUIET_SHARE = 0.06  # of a core: a server that does more is still busy with the job before
QUIET_SECS = 0.4
QUIET_LIMIT_SECS = 90.0


class JobFailed(RuntimeError):
    """The client could not do its job; the message has what it received."""


@dataclass
class Harness:
    model_port: int
    model: "subprocess.Popen[bytes]"
    client: "subprocess.Popen[str]"

    @property
    def helpers(self) -> list[int]:
        """The client and the model are children of this process."""
        return [os.getpid(), self.client.pid, self.model.pid]

    def ask(self, target: Target, api: str, job: dict[str, Any]) -> dict[str, Any]:
        """Hands the client a job, and returns what it found."""
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        self.client.stdin.write(json.dumps({**job, "client": {**target.client, "api": api}}) + "\n")
        self.client.stdin.flush()
        line = self.client.stdout.readline()
        if not line:
            raise JobFailed("The client has ended.")
        result: dict[str, Any] = json.loads(line)
        if "error" in result:
            raise JobFailed(f"{target.name}, {api}, {job['do']}: {result['error']}")
        return result

    def measure(self, target: Target, api: str, job: dict[str, Any]) -> Figures:
        """A job with the server's CPU, and with what other processes took of its core."""
        servers = self.server_pids(target)
        before, start = self._read(servers), time.monotonic()
        with CpuSamples(servers) as samples:
            figures = self.ask(target, api, job)
        took_secs = time.monotonic() - start
        after = self._read(servers)
        window = [figures.pop(name) for name in ("opened_us", "closed_us") if name in figures]
        if not servers:
            return figures  # a server that was started elsewhere: its processes are not known
        if window:
            figures["window_cpu_secs"] = samples.between(*window)
        work = work_between(before, after, took_secs, is_server_on_its_core=servers != [self.model.pid])
        figures["cpu_secs"] = work.server_secs
        figures["foreign_share"] = work.foreign_share
        figures["helper_share"] = work.helper_share
        return figures

    def watch(self, target: Target, secs: float) -> Figures:
        """What a server costs while the client does nothing."""
        servers = self.server_pids(target)
        before, start = self._read(servers), time.monotonic()
        time.sleep(secs)
        took_secs = time.monotonic() - start
        work = work_between(before, self._read(servers), took_secs)
        return {"cpu_share": work.server_secs / took_secs, "foreign_share": work.foreign_share}

    def server_pids(self, target: Target) -> list[int]:
        """Directly at the model, the model is the server."""
        if isinstance(target, Direct):
            return [self.model.pid]
        return target.pids

    def _read(self, servers: list[int]) -> Reading:
        helpers = [self.client.pid]
        if servers != [self.model.pid]:
            helpers.append(self.model.pid)
        return Reading.now(servers, helpers)

    def wait_until_quiet(self, target: Target) -> None:
        """Until what the last job left behind is done, such as answers whose clients went away."""
        pids = self.server_pids(target)
        deadline = time.monotonic() + QUIET_LIMIT_SECS
        while pids and time.monotonic() < deadline:
            before = cpu_secs(pids)
            time.sleep(QUIET_SECS)
            if cpu_secs(pids) - before <= QUIET_SHARE * QUIET_SECS:
                return


@contextmanager
def running_harness(model_port: int = 0) -> Iterator[Harness]:
    port = model_port or free_port()
    core = cores()[1]
    python = [sys.executable, "-m"]
    model = subprocess.Popen(pinned(core, [*python, "bench.model", str(port)]), cwd=ROOT)
    client = subprocess.Popen(
        pinned(core, [*python, "bench.client"]), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        _wait_for_model(port)
        yield Harness(port, model, client)
    finally:
        client.kill()
        client.wait()
        for pipe in (client.stdin, client.stdout):
            assert pipe is not None
            pipe.close()
        stop(model)


def _wait_for_model(port: int) -> None:
    deadline = time.monotonic() + MODEL_START_SECS
    while not answers(f"http://127.0.0.1:{port}/v1/models", ""):
        if time.monotonic() > deadline:
            raise RuntimeError("The stub model does not answer.")
        time.sleep(0.05)


def machine(tree: Path) -> dict[str, str | float]:
    """What a figure can't be read without."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=tree, capture_output=True, text=True, check=False
    )
    return {
        "cpu": model,
        "cores": os.cpu_count() or 0,
        "python": sys.version.split()[0],
        "kernel": os.uname().release.partition("-")[0],
        "load_before": round(os.getloadavg()[0], 2),
        "commit": commit.stdout.strip(),
        "day": time.strftime("%Y-%m-%d"),
    }
