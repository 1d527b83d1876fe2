"""How costs grow: with chains, answers, tables, waiting readers and readers of one stream."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.clocks import memory_bytes
from bench.harness import Figures, Harness
from bench.scenarios import Run, fanout_500, first_text, short, wait_until_tidy, waiting
from bench.stored import stored_bytes
from bench.targets import Serve

SAMPLE_SECS = 0.1
ANSWER_LIMIT_SECS = 1_800.0
SEED_OWNER = "seed-1"
# Runs inside the measured tree, on an empty database of its own.
CHAIN_COSTS = """
import json
from tests.support.admission_costs import admission, cost_of_admission, stored
from tests.support.long_chains import analyze
for turns in {sizes}:
    chain = stored(turns)
    analyze()
    asked = {{
        "chain": admission(chain, previous_id=chain.ids[-1]),
        "session": admission(chain, session_id=chain.session.public_id),
        "conversation": admission(chain, conversation=chain.conversation.pk),
    }}
    for _ in range(2):  # the first one also reads what a process reads once
        costs = {{name: cost_of_admission(one) for name, one in asked.items()}}
    print("COSTS", json.dumps([turns, costs]))
"""


@dataclass(frozen=True)
class Growth:
    """Something whose size is varied, its sizes, and what is measured at each."""

    title: str
    unit: str
    sizes: tuple[int, ...]
    measure: Callable[[Harness, Serve, tuple[int, ...]], Iterator[tuple[int, Figures]]]
    figures: dict[str, str]  # by name, what the table calls it
    drawn: tuple[str, ...]  # the figures of the picture


def chains(harness: Harness, target: Serve, sizes: tuple[int, ...]) -> Iterator[tuple[int, Figures]]:
    code = CHAIN_COSTS.format(sizes=list(sizes))
    command = [target.python, "manage.py", "shell", "-c", code]
    done = subprocess.run(command, cwd=target.tree, env=target.env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    for line in done.stdout.splitlines():
        if line.startswith("COSTS "):
            turns, costs = json.loads(line.removeprefix("COSTS "))
            figures = {}
            for name, (queries, steps) in costs.items():
                figures[f"{name}_queries"] = float(queries)
                figures[f"{name}_steps"] = float(steps)
            yield turns, figures


def answers(harness: Harness, target: Serve, sizes: tuple[int, ...]) -> Iterator[tuple[int, Figures]]:
    for tokens in sizes:
        run = Run(harness, target, "responses", 1.0)
        base = memory_bytes(target.pids)
        with peak_memory(target) as peak:
            made = run.measure(do="produce", tokens=tokens, pace=0.0, words=True, limit_secs=ANSWER_LIMIT_SECS)
        wait_until_tidy(run)
        body = run.ask(do="fetch", path=f"/v1/responses/{made['id']}", times=3)
        # The last event of a stream that a client has nearly read.
        late = f"/v1/responses/{made['id']}?stream=true&starting_after={tokens}"
        resumed = run.ask(do="fetch", path=late, times=3)
        yield (
            tokens,
            {
                "cpu_us_per_token": made["cpu_secs"] * 1e6 / tokens,
                "peak_mb": max(0, max(peak) - base) / 1e6,
                "body_mb": body["bytes"] / 1e6,
                "get_ms": body["took_p50_ms"],
                "resume_ms": resumed["took_p50_ms"],
                "foreign_share": made["foreign_share"],
            },
        )


def tables(harness: Harness, target: Serve, sizes: tuple[int, ...]) -> Iterator[tuple[int, Figures]]:
    stored = 0
    for size in sizes:
        start = time.monotonic()
        target.manage("seed_responses", str(size - stored), "--seed", str(size), "--yes")
        seed_secs = time.monotonic() - start
        added, stored = size - stored, size
        run = Run(harness, target, "responses", 4.0)
        requests, first = short(run), first_text(run)
        listed = _listing_ms(run, f"bench {size}")
        wait_until_tidy(run)
        idle = harness.watch(target, 5.0)
        yield (
            size,
            {
                "cpu_ms_per_request": requests["cpu_ms_per_request"],
                "first_ms": first["first_p50_ms"],
                "list_ms": listed,
                "idle_share": idle["cpu_share"],
                "stored_mb": stored_bytes(target) / 1e6,
                "seeded_per_sec": added / seed_secs,
                "foreign_share": requests["foreign_share"],
            },
        )


def _listing_ms(run: Run, key_name: str) -> float:
    """The newest page of an owner who has many of the responses."""
    assert isinstance(run.target, Serve)
    own_key = run.target.key
    run.target.key = run.target.manage("createkey", key_name, "--owner", SEED_OWNER)
    try:
        listed = run.ask(do="fetch", path="/v1/responses?limit=20", times=10)
    finally:
        run.target.key = own_key
    return float(listed["took_p50_ms"])


def waiting_readers(harness: Harness, target: Serve, sizes: tuple[int, ...]) -> Iterator[tuple[int, Figures]]:
    for count in sizes:
        yield count, waiting(Run(harness, target, "responses", 5.0, count))


def readers(harness: Harness, target: Serve, sizes: tuple[int, ...]) -> Iterator[tuple[int, Figures]]:
    for count in sizes:
        harness.wait_until_quiet(target)
        yield count, fanout_500(Run(harness, target, "responses", 5.0, count))


@contextmanager
def peak_memory(target: Serve) -> Iterator[list[int]]:
    """Samples of the memory, taken while the block runs."""
    samples = [memory_bytes(target.pids)]
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_SECS):
            samples.append(memory_bytes(target.pids))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield samples
    finally:
        is_over.set()
        sampler.join()


GROWTHS = {
    "chains": Growth(
        "One more turn behind a chain",
        "turns",
        (10, 100, 1_000, 10_000),
        chains,
        {
            "chain_queries": "queries, chain",
            "chain_steps": "steps of SQLite, chain",
            "session_queries": "queries, session",
            "session_steps": "steps, session",
            "conversation_queries": "queries, conversation",
            "conversation_steps": "steps, conversation",
        },
        ("chain_steps", "session_steps", "conversation_steps"),
    ),
    "answers": Growth(
        "A long answer",
        "tokens",
        (1_000, 10_000, 100_000, 1_000_000),
        answers,
        {
            "cpu_us_per_token": "CPU per token, µs",
            "peak_mb": "memory above the base, MB",
            "body_mb": "body of GET, MB",
            "get_ms": "GET, ms",
            "resume_ms": "its last events, ms",
        },
        ("peak_mb", "body_mb", "get_ms", "resume_ms"),
    ),
    "tables": Growth(
        "Stored responses",
        "responses",
        (1_000, 10_000, 100_000, 1_000_000),
        tables,
        {
            "cpu_ms_per_request": "CPU per short request, ms",
            "first_ms": "first text, ms",
            "list_ms": "newest page of an owner, ms",
            "idle_share": "idle, share of a core",
            "stored_mb": "database, MB",
            "seeded_per_sec": "seeded per second",
        },
        ("cpu_ms_per_request", "first_ms", "list_ms"),
    ),
    "waiting": Growth(
        "Waiting readers",
        "readers",
        (1, 10, 100, 500, 2_000),
        waiting_readers,
        {"cpu_share": "share of a core", "kb_per_reader": "memory of each, KB", "opened_per_sec": "opened per second"},
        ("cpu_share",),
    ),
    "readers": Growth(
        "Readers of one live stream of 50 tokens per second",
        "readers",
        (1, 10, 50, 100, 250, 500),
        readers,
        {
            "added_p50_ms": "p50 added, ms",
            "added_p99_ms": "p99 added, ms",
            "slower": "stream slower by",
            "cpu_us_per_token": "CPU per token and reader, µs",
        },
        ("added_p50_ms", "added_p99_ms", "cpu_us_per_token"),
    ),
}
