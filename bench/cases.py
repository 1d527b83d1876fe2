"""The cases of the benchmark. Each checks what it received before it reports how long that took."""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import median

from bench.client import Download, Word, ask, replay
from bench.server import count_commits, count_segments, cpu_secs, wait_until_tidy
from tests.support.server import Server

Figures = dict[str, float]
PACE = 50.0
FRAMING_EVENTS = 8  # created, in_progress, item and part added, text, part and item done, completed
REPLAY_EVENTS = 10_000
REPLAY_PACE = 1_000.0  # slow enough for about one commit per event: the most segments a log can have


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def commit_floor(home: Path, rounds: int = 200) -> Figures:
    """The time of one durable SQLite commit on this machine: no event can be faster."""
    took: list[float] = []
    with sqlite3.connect(home / "floor.sqlite3", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE floor (frame BLOB)")
        for _ in range(rounds):
            start = time.perf_counter()
            connection.execute("INSERT INTO floor VALUES (?)", (bytes(250),))
            took.append((time.perf_counter() - start) * 1e3)
    return {"p50_ms": median(took), "p99_ms": percentile(took, 0.99)}


async def first_text(server: Server, requests: int = 40) -> Figures:
    """From the model's first word to the client, one request at a time."""
    cpu_before = cpu_secs(server)
    downloads = [await ask(server, words=3, pace=PACE) for _ in range(requests)]
    cpu = cpu_secs(server) - cpu_before
    delays = []
    since_request = []
    for download in downloads:
        first = _checked(download, 3).words()[0]
        delays.append(first.delay_ms)
        since_request.append((first.arrived_ns - download.started_ns) / 1e6)
    return {
        "requests": requests,
        "p50_ms": median(delays),
        "max_ms": max(delays),
        "since_request_p50_ms": median(since_request),
        "server_cpu_ms_per_request": cpu / requests * 1e3,
    }


async def replays(server: Server, rounds: int = 3) -> Figures:
    """The whole log of an ended response, before and after it is merged."""
    words = REPLAY_EVENTS - FRAMING_EVENTS
    live = _checked(await ask(server, words, REPLAY_PACE), words)
    segments = count_segments(server, live.response_id)
    unmerged = [await replay(server, live.response_id) for _ in range(rounds)]
    if count_segments(server, live.response_id) != segments:
        raise RuntimeError("The log was merged before it was read; this machine is too busy.")
    wait_until_tidy(server)
    merged = [await replay(server, live.response_id) for _ in range(rounds)]
    for download in unmerged + merged:
        if download.events() != live.events():
            raise RuntimeError("A replay differs from what was streamed.")
    return {
        "events": REPLAY_EVENTS,
        "unmerged_segments": segments,
        "unmerged_first_secs": unmerged[0].took_secs,
        "unmerged_p50_secs": median(download.took_secs for download in unmerged),
        "merged_segments": count_segments(server, live.response_id),
        "merged_first_secs": merged[0].took_secs,
        "merged_p50_secs": median(download.took_secs for download in merged),
    }


async def streams(server: Server, count: int, secs: int = 10) -> Figures:
    """Several answers at once, each at the pace of a fast model."""
    words = int(PACE * secs)
    # A little more than the time of a word apart: real answers are not in step.
    apart_secs = (1 + 1 / count) / PACE
    cpu_before, own_before, start = cpu_secs(server), time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_later(number * apart_secs, server, words)) for number in range(count)]
    downloads = [task.result() for task in tasks]
    took = time.perf_counter() - start
    cpu, own_cpu = cpu_secs(server) - cpu_before, time.process_time() - own_before
    events = sum(len(_checked(download, words).events()) for download in downloads)
    delays = _delays([download.words() for download in downloads])
    return delays | {
        "streams": count,
        "events": events,
        "server_cpu_us_per_event": cpu / events * 1e6,
        "server_cpu_share": cpu / took,
        "client_cpu_share": own_cpu / took,
        "commits": count_commits(server, [download.response_id for download in downloads]),
    }


async def _later(secs: float, server: Server, words: int) -> Download:
    await asyncio.sleep(secs)
    return await ask(server, words, PACE)


def _checked(download: Download, words: int) -> Download:
    found = (len(download.words()), len(download.events()))
    if found != (words, words + FRAMING_EVENTS):
        raise RuntimeError(f"{download.response_id}: {found[0]} of {words} words, in {found[1]} events.")
    return download


def _delays(streams: list[list[Word]]) -> Figures:
    """Words that arrive while streams still start count apart: they compete with admissions."""
    all_started_ns = max(words[0].arrived_ns for words in streams)
    steady = []
    starting = []
    late = []
    for word in chain.from_iterable(streams):
        late.append(word.late_ms)
        if word.arrived_ns > all_started_ns:
            steady.append(word.delay_ms)
        else:
            starting.append(word.delay_ms)
    return {
        "words": len(late),
        "p50_ms": median(steady),
        "p99_ms": percentile(steady, 0.99),
        "max_ms": max(steady),
        "starting_p50_ms": median(starting),
        "starting_p99_ms": percentile(starting, 0.99),
        "model_late_p99_ms": percentile(late, 0.99),
    }


def ratios(figures: dict[str, Figures]) -> Figures:
    """Figures that can be compared between machines, and between runs on a busy one."""
    one, many, replay = figures["one_stream"], figures["many_streams"], figures["replay"]
    commit_ms = figures["commit_floor"]["p50_ms"]
    return {
        "first_text_to_commit": figures["first_text"]["p50_ms"] / commit_ms,
        "one_stream_to_commit": one["p50_ms"] / commit_ms,
        "many_to_one_p50": many["p50_ms"] / one["p50_ms"],
        "many_p99_to_p50": many["p99_ms"] / many["p50_ms"],
        "many_to_one_cpu_per_event": many["server_cpu_us_per_event"] / one["server_cpu_us_per_event"],
        "many_server_to_client_cpu": many["server_cpu_share"] / many["client_cpu_share"],
        "many_events_per_commit": many["events"] / many["commits"],
        "unmerged_to_merged_replay": replay["unmerged_p50_secs"] / replay["merged_p50_secs"],
    }
