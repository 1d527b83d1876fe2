"""What is measured. Every case checks what it received before it says how long that took."""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
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
    """What one durable SQLite commit costs here: no event can be faster than that."""
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
    firsts = [_checked(download, 3).words()[0] for download in downloads]
    pairs = zip(firsts, downloads, strict=True)
    return {
        "requests": requests,
        "p50_ms": median(word.delay_ms for word in firsts),
        "max_ms": max(word.delay_ms for word in firsts),
        "since_request_p50_ms": median((word.arrived_ns - download.started_ns) / 1e6 for word, download in pairs),
        "server_cpu_ms_per_request": cpu / requests * 1e3,
    }


async def replays(server: Server, rounds: int = 3) -> Figures:
    """The whole log of an ended response, before and after it is merged."""
    live = _checked(await ask(server, REPLAY_EVENTS - FRAMING_EVENTS, REPLAY_PACE), REPLAY_EVENTS - FRAMING_EVENTS)
    segments = count_segments(server, live.response_id)
    unmerged = [await replay(server, live.response_id) for _ in range(rounds)]
    if count_segments(server, live.response_id) != segments:
        raise RuntimeError("The log was merged while it was to be read unmerged; this machine is too busy.")
    wait_until_tidy(server)
    merged = [await replay(server, live.response_id) for _ in range(rounds)]
    if any(download.events() != live.events() for download in unmerged + merged):
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
    """So many answers at once, each at the pace of a fast model."""
    words = int(PACE * secs)
    # A little more than a word's time apart: real answers do not speak in step.
    apart_secs = (1 + 1 / count) / PACE
    cpu_before, own_before, start = cpu_secs(server), time.process_time(), time.perf_counter()
    downloads = await asyncio.gather(*(_later(number * apart_secs, server, words) for number in range(count)))
    took = time.perf_counter() - start
    cpu, own_cpu = cpu_secs(server) - cpu_before, time.process_time() - own_before
    events = sum(len(_checked(download, words).events()) for download in downloads)
    return {
        "streams": count,
        **_delays([download.words() for download in downloads]),
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
        raise RuntimeError(f"{download.response_id}: of {words} words came {found[0]}, in {found[1]} events.")
    return download


def _delays(streams: list[list[Word]]) -> Figures:
    """Apart for the time in which streams were still starting: there, admissions compete with words."""
    heard = [word for words in streams for word in words]
    all_started_ns = max(words[0].arrived_ns for words in streams)
    steady = [word.delay_ms for word in heard if word.arrived_ns > all_started_ns]
    starting = [word.delay_ms for word in heard if word.arrived_ns <= all_started_ns]
    return {
        "words": len(heard),
        "p50_ms": median(steady),
        "p99_ms": percentile(steady, 0.99),
        "max_ms": max(steady),
        "starting_p50_ms": median(starting),
        "starting_p99_ms": percentile(starting, 0.99),
        "model_late_p99_ms": percentile([word.late_ms for word in heard], 0.99),
    }


def ratios(figures: dict[str, Figures]) -> Figures:
    """What may be compared between machines, and between runs on a busy one."""
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
