"""``make bench CLUSTER=1``: several processes beside one, on PostgreSQL with ``fsync``."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.clocks import core_busy_secs, cores, cpu_secs, memory_bytes
from bench.cluster_target import Cluster, InProcess
from bench.harness import Figures, Harness, running_harness
from bench.results import Results
from bench.scenarios import PACE, Run, warm_up

API = "responses"
STREAMS = 20
FLOOD = {"do": "spread_flood", "streams": 50, "tokens": 80}
CANCELLATIONS = 10
READERS = 250
READERS_SECS = 8.0  # of the live stream, after they are there
ATTACHED_PER_SEC = 15  # also on a machine that has other work


def measure(results: Results, rounds: int, secs: float) -> None:
    """One process and the cluster take turns; then one of the two workers ends."""
    with _started() as (harness, alone, cluster):
        for _ in range(rounds):
            for target in (alone, cluster):
                _add(results, "across", target.name, across(harness, target, secs))
                _add(results, "spread_flood", target.name, flood(harness, target))
            _add(results, "cancel", cluster.name, cancel(harness, cluster))
        _add(results, "readers", cluster.name, readers(harness, cluster))
        cluster.stop_one_worker()
        for _ in range(rounds):
            _add(results, "spread_flood", "1 worker", flood(harness, cluster))


@contextmanager
def _started() -> Iterator[tuple[Harness, InProcess, Cluster]]:
    alone, cluster = InProcess(), Cluster()
    with ExitStack() as stack:
        harness = stack.enter_context(running_harness())
        for target in (alone, cluster):
            _report(f"starting {target.name} ...")
            stack.callback(target.stop)
            target.start(harness.model_port)
            warm_up(Run(harness, target, API, 1.0))
        yield harness, alone, cluster


def _add(results: Results, scenario: str, target: str, figures: Figures) -> None:
    results.add(scenario, API, target, figures)
    _report(f"{scenario} {target}: {results.line(scenario, figures)}")


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# -- what is measured -------------------------------------------------------------------
def across(harness: Harness, target: InProcess, secs: float) -> Figures:
    job = {"do": "across", "streams": STREAMS, "pace": PACE, "secs": secs, "reader_port": target.web_ports[-1]}
    figures = _measured(harness, target, job)
    figures["cpu_us_per_event"] = 0.0
    for role, pids in target.roles.items():
        per_event = figures.pop(f"cpu_secs {role}") * 1e6 / figures["events"]
        figures[f"cpu_us_per_event {role}"] = per_event
        figures["cpu_us_per_event"] += per_event
        figures[f"memory_mb {role}"] = memory_bytes(pids) / len(pids) / 1e6
    return figures


def flood(harness: Harness, target: InProcess) -> Figures:
    return _measured(harness, target, {**FLOOD, "ports": target.web_ports})


def cancel(harness: Harness, target: InProcess) -> Figures:
    job = {"do": "cancel", "times": CANCELLATIONS, "pace": PACE, "reader_port": target.web_ports[-1]}
    return _measured(harness, target, job)


def readers(harness: Harness, target: InProcess) -> Figures:
    """Of one live stream, all at one web process."""
    tokens = int(PACE * (READERS_SECS + READERS / ATTACHED_PER_SEC))
    job = {"do": "fanout", "readers": READERS, "tokens": tokens, "pace": PACE}
    before = cpu_secs(target.roles["web"][:1])
    figures = _measured(harness, target, job)
    used = cpu_secs(target.roles["web"][:1]) - before
    figures["cpu_us_per_reader_event"] = used * 1e6 / figures["tokens"]
    return figures


def _measured(harness: Harness, target: InProcess, job: dict[str, Any]) -> Figures:
    """With the CPU of each role, and the share of all cores that other programs took."""
    harness.wait_until_quiet(target)
    before, busy, began = _clocks(harness, target), _busy_secs(), time.monotonic()
    figures: Figures = harness.ask(target, API, job)
    took_secs = time.monotonic() - began
    after = _clocks(harness, target)
    own = 0.0
    for name, secs in after.items():
        own += secs - before[name]
        if name in target.roles:
            figures[f"cpu_secs {name}"] = secs - before[name]
    foreign = _busy_secs() - busy - own
    figures["foreign_share"] = max(0.0, foreign / took_secs / len(set(cores())))
    return figures


def _clocks(harness: Harness, target: InProcess) -> dict[str, float]:
    found = {"helpers": cpu_secs([harness.client.pid, harness.model.pid])}
    for role, pids in target.roles.items():
        found[role] = cpu_secs(pids)
    return found


def _busy_secs() -> float:
    return sum(core_busy_secs(core) for core in set(cores()))
