"""The client, in a process of its own: each line of its input is a job, each line of its output the figures of one."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from bench.cluster_jobs import CLUSTER_JOBS
from bench.exchange import Exchange
from bench.requests import Client, next_order
from bench.statistics import describe
from bench.wire import now_us

Figures = dict[str, float]
Job = dict[str, Any]
GRACE_SECS = 2.0  # for the last tokens of a stream that is on time
LIMIT_SECS = 120.0
JOB_EXTRA_SECS = 180.0  # a job opens thousands of streams, one after another


# -- one request after another ----------------------------------------------------------
async def closed_loop(client: Client, job: Job) -> Figures:
    """Some clients, each with one request after another on its own connection."""
    finished: list[Exchange] = []
    start = now_us()
    until = start + int(job["secs"] * 1e6)

    async def work() -> None:
        connection = await client.connect()
        while now_us() < until:
            text = next_order(job["tokens"], words=job.get("words", False))
            exchange = client.ask(text, stream=job["stream"])
            connection.start(exchange)
            await exchange.ended
            exchange.check(b"data: " if job["stream"] else b'"usage"')
            finished.append(exchange)
            if connection.transport is None:
                connection = await client.connect()
        connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(job["clients"]):
            group.create_task(work())
    took_secs = (now_us() - start) / 1e6
    figures = {"requests": float(len(finished)), "rate": len(finished) / took_secs}
    totals = [(exchange.ended_us - exchange.started_us) / 1000 for exchange in finished]
    figures |= describe("total", totals)
    if job["stream"] and not job.get("words"):
        figures |= describe("first", [_first_text_ms(exchange) for exchange in finished])
    return figures


def _first_text_ms(exchange: Exchange) -> float:
    if not exchange.tokens:
        raise RuntimeError(f"No text: {exchange.received[:600]!r}")
    return (exchange.tokens[0].arrived_us - exchange.started_us) / 1000


# -- many streams -----------------------------------------------------------------------
async def paced(client: Client, job: Job) -> Figures:
    """Many streams at a model's pace; what counts is what arrives in the window after all have started."""
    count, pace, secs = job["streams"], job["pace"], job["secs"]
    # A little more than the time of a token apart: real answers are not in step.
    apart_secs = (1 + 1 / count) / pace
    ramp_secs = apart_secs * count
    tokens = int(pace * (ramp_secs + secs))
    exchanges = await _started(client, count, tokens, pace, apart_secs)
    opened_us = exchanges[0].started_us + int(ramp_secs * 1e6)
    closed_us = opened_us + int(secs * 1e6)
    await _until_ended(exchanges, (closed_us - now_us()) / 1e6 + ramp_secs + GRACE_SECS)
    client.close()
    early: list[float] = []
    steady: list[float] = []
    total = 0
    for exchange in exchanges:
        total += len(exchange.tokens)
        for token in exchange.tokens:
            if opened_us <= token.arrived_us < closed_us:
                steady.append(token.delay_ms)
            elif token.arrived_us < opened_us:
                early.append(token.delay_ms)
    figures = {"tokens": float(total), "delivered": len(steady) / (count * pace * secs)}
    figures |= {"window_tokens": float(len(steady)), "opened_us": float(opened_us), "closed_us": float(closed_us)}
    figures["whole"] = sum(exchange.is_whole_stream for exchange in exchanges) / count
    return figures | describe("added", steady) | describe("starting", early)


async def flood(client: Client, job: Job) -> Figures:
    """Many streams at once, as fast as they go; all are read to their end."""
    exchanges = await _started(client, job["streams"], job["tokens"], 0.0, 0.0)
    start = exchanges[0].started_us
    await _until_ended(exchanges, LIMIT_SECS)
    client.close()
    total = sum(len(exchange.tokens) for exchange in exchanges)
    last = max(exchange.ended_us or exchange.started_us for exchange in exchanges)
    whole = sum(exchange.is_whole_stream for exchange in exchanges)
    figures = {"tokens": float(total), "rate": total / ((last - start) / 1e6), "took_secs": (last - start) / 1e6}
    return figures | {"delivered": total / (job["streams"] * job["tokens"]), "whole": whole / job["streams"]}


async def _started(client: Client, count: int, tokens: int, pace: float, apart_secs: float) -> list[Exchange]:
    loop = asyncio.get_running_loop()
    start = loop.time()
    exchanges: list[Exchange] = []
    if not apart_secs:
        client.held.extend(await asyncio.gather(*(client.connect() for _ in range(count))))
    for number in range(count):
        if apart_secs:
            await asyncio.sleep(max(0.0, start + number * apart_secs - loop.time()))
            client.held.append(await client.connect())
        exchange = client.ask(next_order(tokens, pace), stream=True)
        exchanges.append(exchange)
        client.held[number].start(exchange)
    return exchanges


async def _until_ended(exchanges: list[Exchange], limit_secs: float) -> None:
    await asyncio.wait([exchange.ended for exchange in exchanges], timeout=limit_secs)


# -- connections that stay open between two jobs ----------------------------------------
async def hold(client: Client, job: Job) -> Figures:
    """Opens streams and leaves them open. Each has begun when the marker has come, such as its first token."""
    loop = asyncio.get_running_loop()
    start = now_us()
    waiting = asyncio.Semaphore(job.get("at_once", 20))
    took: list[float] = []

    async def open_one() -> None:
        async with waiting:
            connection = await client.connect()
            client.held.append(connection)
            text = next_order(job["tokens"], job["pace"], after=job.get("after", 0.0))
            exchange = client.ask(text, stream=True, fields=job.get("fields"), headers=job.get("headers", ""))
            exchange.began = loop.create_future()
            exchange.marker = job["marker"].encode()
            connection.start(exchange)
            done, _ = await asyncio.wait(
                (exchange.began, exchange.ended), timeout=LIMIT_SECS, return_when=asyncio.FIRST_COMPLETED
            )
            if exchange.began not in done:
                raise RuntimeError(f"A stream did not begin: {exchange.arrivals[:3]!r}")
            took.append((now_us() - exchange.started_us) / 1000)

    async with asyncio.TaskGroup() as group:
        for _ in range(job["count"]):
            group.create_task(open_one())
    return {"opened": float(len(took)), "took_secs": (now_us() - start) / 1e6} | describe("began", took)


async def release(client: Client, job: Job) -> Figures:
    closed = float(len(client.held))
    client.close()
    return {"closed": closed}


# -- stored responses -------------------------------------------------------------------
async def produce(client: Client, job: Job) -> dict[str, Any]:
    """One stored answer, streamed to its end; its id is for ``fetch``."""
    connection = await client.connect()
    text = next_order(job["tokens"], job["pace"], words=job.get("words", False))
    exchange = client.ask(text, stream=True)
    connection.start(exchange)
    await asyncio.wait([exchange.ended], timeout=job.get("limit_secs", LIMIT_SECS))
    connection.close()
    exchange.check(b"response.completed")
    took_secs = (exchange.ended_us - exchange.started_us) / 1e6
    return {"id": exchange.response_id, "events": exchange.events(), "took_secs": took_secs}


async def fetch(client: Client, job: Job) -> Figures:
    """One GET several times, on one connection."""
    connection = await client.connect()
    took: list[float] = []
    events = size = 0
    for _ in range(job["times"]):
        exchange = client.exchange(f"GET {job['path']}", headers=job.get("headers", ""))
        connection.start(exchange)
        await exchange.ended
        exchange.check(b"")
        took.append((exchange.ended_us - exchange.started_us) / 1000)
        events, size = exchange.events(), len(exchange.received)
        if connection.transport is None:
            connection = await client.connect()
    connection.close()
    return {"events": float(events), "bytes": float(size), "first_ms": took[0]} | describe("took", took)


async def fanout(client: Client, job: Job) -> Figures:
    """One live stream and its readers; counts what the model sent after all of them were there."""
    loop = asyncio.get_running_loop()
    producer = client.ask(next_order(job["tokens"], job["pace"]), stream=True)
    producer.began = loop.create_future()
    producer.marker = b"response.created"
    source = await client.connect()
    source.start(producer)
    await asyncio.wait([producer.began], timeout=LIMIT_SECS)
    path = f"GET {client.prefix}/responses/{producer.response_id}?stream=true"
    readers: list[Exchange] = []
    for _ in range(job["readers"]):
        connection = await client.connect()
        client.held.append(connection)
        reader = client.exchange(path)
        reader.began = loop.create_future()
        readers.append(reader)
        connection.start(reader)
    await asyncio.wait([reader.began for reader in readers if reader.began], timeout=LIMIT_SECS)
    attached_us = now_us()
    if producer.ended.done():
        raise RuntimeError("The stream ended before all readers were there; --seconds makes it longer.")
    await _until_ended([producer, *readers], LIMIT_SECS)
    source.close()
    client.close()
    delays: list[float] = []
    for reader in readers:
        delays.extend(token.delay_ms for token in reader.tokens if token.sent_us > attached_us)
    if not delays:
        raise RuntimeError("The model had sent all before the last reader was there; --seconds makes it longer.")
    own = [token.delay_ms for token in producer.tokens if token.sent_us > attached_us]
    first, last = producer.tokens[0].arrived_us, producer.tokens[-1].arrived_us
    pace = (len(producer.tokens) - 1) / ((last - first) / 1e6)
    figures = {"pace": pace, "slower": 1 - pace / job["pace"], "tokens": float(len(delays))}
    figures["whole"] = sum(reader.is_whole_stream for reader in readers) / max(1, len(readers))
    return figures | describe("added", delays) | describe("producer", own)


JOBS: dict[str, Callable[[Client, Job], Coroutine[Any, Any, dict[str, Any]]]] = {
    "closed_loop": closed_loop,
    "paced": paced,
    "flood": flood,
    "hold": hold,
    "release": release,
    "produce": produce,
    "fetch": fetch,
    "fanout": fanout,
} | CLUSTER_JOBS


def main() -> None:
    loop = asyncio.new_event_loop()
    clients: dict[str, Client] = {}
    for line in sys.stdin:
        job = json.loads(line)
        identity = json.dumps(job["client"], sort_keys=True)
        client = clients.setdefault(identity, Client(**job["client"]))
        try:
            limit_secs = job.get("limit_secs", LIMIT_SECS) + JOB_EXTRA_SECS
            result = loop.run_until_complete(asyncio.wait_for(JOBS[job["do"]](client, job), limit_secs))
        except (Exception, ExceptionGroup) as error:
            causes = error.exceptions if isinstance(error, ExceptionGroup) else [error]
            result = {"error": f"{type(causes[0]).__name__}: {causes[0]}"}
            client.close()
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
