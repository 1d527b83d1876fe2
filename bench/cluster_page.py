"""The measured part of docs/cluster.md: the goals, the CPU and memory of each role, and a table of sizes."""

import json
import math
from pathlib import Path

from bench.cluster import API, READERS, STREAMS
from bench.page import replace_part
from bench.results import Results, number
from bench.targets import ROOT

STORED = ROOT / "bench" / "cluster.json"
PAGE = ROOT / "docs" / "cluster.md"
ALONE, CLUSTER = "one process", "cluster"
ROLES = {"worker": "workers", "web": "web processes", "postgresql": "PostgreSQL", "redis": "Redis"}
MAX_SHARE = 0.6  # of a core, so that bursts find room
TOKENS_PER_SEC = 50
SIZES = (1_000, 5_000, 20_000)
POOL = 16  # connections of a web process at most: HERMES_DATABASE_POOL and 6
WORKER_CONNECTIONS = 7


def write(results: Results, path: Path = STORED, page: Path = PAGE) -> None:
    path.write_text(json.dumps(results.as_json(), indent=1) + "\n")
    replace_part("cluster", text(results), page)


def text(results: Results) -> str:
    parts = [_about(results), _goals(results), _roles(results), _sizes(results)]
    return "\n\n".join(parts)


def _about(results: Results) -> str:
    found = results.machine
    return (
        f"Measured by `make bench CLUSTER=1` with two web processes and two workers: {found['cpu']}, "
        f"{found['cores']} cores\nthat they share with the client, the model, PostgreSQL and Redis; "
        f"Python {found['python']}, commit {found['commit']}. Foreign CPU is the share\nof all cores "
        "that other programs took. ✓ is reached, ✗ is not."
    )


def _middle(results: Results, scenario: str, target: str, figure: str) -> float:
    value = results.middle(scenario, API, target, figure)
    if value is None:
        raise SystemExit(f"{scenario} of {target} has no {figure}.")
    return value


def _goals(results: Results) -> str:
    delays = [_middle(results, "across", CLUSTER, name) for name in ("added_p50_ms", "added_p99_ms")]
    cancels = [_middle(results, "cancel", CLUSTER, name) for name in ("cancel_p50_ms", "cancel_max_ms")]
    cpu = _middle(results, "across", CLUSTER, "cpu_us_per_event")
    ratio = cpu / _middle(results, "across", ALONE, "cpu_us_per_event")
    rates = [_middle(results, "spread_flood", name, "rate") for name in (ALONE, "1 worker", CLUSTER)]
    read = [_middle(results, "readers", CLUSTER, name) for name in ("added_p50_ms", "added_p99_ms")]
    rows = [
        _row(
            f"{STREAMS} streams × {TOKENS_PER_SEC} tokens/s through another web process: p50 / p99 added",
            _ms(delays),
            f"≤ 10 / 50 ms {_mark(delays[0] <= 10 and delays[1] <= 50)}",
            _foreign(results, "across", CLUSTER),
        ),
        _row(
            "cancelled through another web process: p50 / slowest",
            _ms(cancels),
            f"≤ 300 ms {_mark(cancels[1] <= 300)}",
            _foreign(results, "cancel", CLUSTER),
        ),
        _row(
            "CPU per event of all roles, over that of one process on PostgreSQL",
            f"{number(cpu)} µs, {ratio:.2f} ×",
            f"≤ 1.6 × {_mark(ratio <= 1.6)}",
            _foreign(results, "across", ALONE),
        ),
        _row(
            "flood of 50 × 80 tokens: one process / one worker / two workers",
            " / ".join(f"{number(rate)}/s" for rate in rates),
            "",
            _foreign(results, "spread_flood", CLUSTER),
        ),
        _row(
            f"{READERS} readers of one live stream through one web process: p50 / p99 added",
            _ms(read),
            "",
            _foreign(results, "readers", CLUSTER),
        ),
    ]
    return "\n".join([_row("", "measured", "must", "foreign CPU"), "|---|---|---|---|", *rows])


def _roles(results: Results) -> str:
    lines = [_row("", "CPU per event", "in one process", "memory of a process"), "|---|---|---|---|"]
    for role, title in ROLES.items():
        alone = results.middle("across", API, ALONE, f"cpu_us_per_event {role}")
        cells = [f"{number(_middle(results, 'across', CLUSTER, f'cpu_us_per_event {role}'))} µs"]
        cells.append("–" if alone is None else f"{number(alone)} µs")
        cells.append(f"{number(_middle(results, 'across', CLUSTER, f'memory_mb {role}'))} MB")
        lines.append(_row(title, *cells))
    return "\n".join(lines)


def _sizes(results: Results) -> str:
    """At the same CPU per event; more events in one commit cost less."""
    cpu_secs = {}
    for role in ROLES:
        cpu_secs[role] = _middle(results, "across", CLUSTER, f"cpu_us_per_event {role}") / 1e6
    per_reader = _middle(results, "readers", CLUSTER, "cpu_us_per_reader_event") / 1e6
    readers = MAX_SHARE / (per_reader * TOKENS_PER_SEC)
    lines = [
        f"Calculated from these, with {MAX_SHARE:.0%} of a core for each process. One web process serves about "
        f"{_rounded(readers)} readers\nof streams that it has anyway:",
        "",
        _row("events per second", "workers", "web processes", "cores of PostgreSQL", "`max_connections`"),
        "|---|---|---|---|---|",
    ]
    for events in SIZES:
        workers = max(2, math.ceil(events * cpu_secs["worker"] / MAX_SHARE))
        webs = max(2, math.ceil(events * cpu_secs["web"] / MAX_SHARE))
        databases = max(1, math.ceil(events * cpu_secs["postgresql"] / MAX_SHARE))
        connections = math.ceil((webs * POOL + workers * WORKER_CONNECTIONS) / 100 + 0.1) * 100
        label = f"{events:,} ({events // TOKENS_PER_SEC} streams of {TOKENS_PER_SEC} tokens)"
        lines.append(_row(label, str(workers), str(webs), str(databases), str(connections)))
    return "\n".join(lines)


def _rounded(value: float) -> str:
    return f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"


def _foreign(results: Results, scenario: str, target: str) -> str:
    return f"{_middle(results, scenario, target, 'foreign_share'):.0%}"


def _ms(values: list[float]) -> str:
    return " / ".join(f"{number(value)} ms" for value in values)


def _mark(is_reached: bool) -> str:
    return "✓" if is_reached else "✗"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
