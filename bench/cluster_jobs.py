"""Jobs of the client for several web processes: what one takes is read and cancelled through another."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from bench.exchange import Exchange
from bench.requests import Client, next_order
from bench.statistics import describe
from bench.wire import now_us

Figures = dict[str, float]
Job = dict[str, Any]
APART_SECS = 0.05  # between the starts of two streams
SPARE_SECS = 3.0  # of each stream: on a busy machine the last ones begin late
LIMIT_SECS = 120.0


async def across(client: Client, job: Job) -> Figures:
    """Turns that one web process takes, each read through another; counts what is sent once all are read."""
    count, pace, secs = job["streams"], job["pace"], job["secs"]
    reader = replace(client, port=job["reader_port"], held=[])
    tokens = int(pace * (count * APART_SECS + secs + 2 * SPARE_SECS))
    starting: list[asyncio.Task[Exchange]] = []
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            starting.append(group.create_task(_begun(client, reader, tokens, pace)))
            await asyncio.sleep(APART_SECS)
    streams = [task.result() for task in starting]
    opened_us = now_us()
    await asyncio.wait([stream.ended for stream in streams], timeout=LIMIT_SECS)
    reader.close()
    client.close()
    closed_us = opened_us + int(secs * 1e6)
    delays: list[float] = []
    for stream in streams:
        delays.extend(token.delay_ms for token in stream.tokens if opened_us <= token.sent_us < closed_us)
    figures = {"events": float(sum(stream.events() for stream in streams))}
    figures["delivered"] = len(delays) / (count * pace * secs)
    figures["whole"] = sum(stream.is_whole_stream for stream in streams) / count
    return figures | describe("added", delays)


async def cancel(client: Client, job: Job) -> Figures:
    """From a cancellation through another web process to the last event of the stream that is read there."""
    took: list[float] = []
    for _ in range(job["times"]):
        reader = replace(client, port=job["reader_port"], held=[])
        stream = await _begun(client, reader, tokens=3_000, pace=job["pace"])
        connection = await reader.connect()
        reader.held.append(connection)
        cancelled = reader.exchange(f"POST {reader.prefix}/responses/{stream.response_id}/cancel")
        connection.start(cancelled)
        await asyncio.wait([stream.ended], timeout=LIMIT_SECS)
        stream.check(b'"status":"cancelled"')
        took.append((stream.ended_us - cancelled.started_us) / 1000)
        reader.close()
        client.close()
    return {"cancelled": float(len(took))} | describe("cancel", took)


async def spread_flood(client: Client, job: Job) -> Figures:
    """Many streams at once through all web processes, as fast as they go."""
    clients = [replace(client, port=port, held=[]) for port in job["ports"]]
    streams: list[Exchange] = []
    began_us = now_us()
    for number in range(job["streams"]):
        chosen = clients[number % len(clients)]
        connection = await chosen.connect()
        chosen.held.append(connection)
        stream = chosen.ask(next_order(job["tokens"]), stream=True)
        connection.start(stream)
        streams.append(stream)
    await asyncio.wait([stream.ended for stream in streams], timeout=LIMIT_SECS)
    for chosen in clients:
        chosen.close()
    took_secs = (max(stream.ended_us for stream in streams) - began_us) / 1e6
    total = sum(len(stream.tokens) for stream in streams)
    return {"rate": total / took_secs, "delivered": total / (job["streams"] * job["tokens"])}


async def _begun(client: Client, reader: Client, tokens: int, pace: float) -> Exchange:
    """A turn in the background, and its stream from the first token on."""
    connection = await client.connect()
    client.held.append(connection)
    asked = client.ask(next_order(tokens, pace), stream=False, fields={"background": True})
    connection.start(asked)
    await asked.ended
    asked.check(b'"id"')
    connection = await reader.connect()
    reader.held.append(connection)
    stream = reader.exchange(f"GET {reader.prefix}/responses/{asked.response_id}?stream=true")
    stream.began = asyncio.get_running_loop().create_future()
    stream.marker = b"response.output_text.delta"
    connection.start(stream)
    await asyncio.wait((stream.began, stream.ended), timeout=LIMIT_SECS, return_when=asyncio.FIRST_COMPLETED)
    return stream


CLUSTER_JOBS: dict[str, Callable[[Client, Job], Coroutine[Any, Any, dict[str, Any]]]] = {
    "across": across,
    "cancel": cancel,
    "spread_flood": spread_flood,
}
