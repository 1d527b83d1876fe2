"""From the log to a connection."""

import asyncio

import pytest

from responses_app.eventlog import Numbering
from responses_app.eventlog.store import event_store
from responses_app.protocol.events import COMPLETED, CREATED
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.status import Status
from responses_app.streaming import pump
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.renderers import ResponsesView


class Recorder(HttpConsumer):
    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[bytes] = []

    async def respond(self, body: bytes) -> None: ...

    async def send_chunk(self, chunk: bytes, *, is_last: bool = False) -> None:
        self.chunks.append(chunk)


async def test_a_reader_hears_a_heartbeat_while_the_log_is_busy_with_what_it_does_not_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pump, "HEARTBEAT_SECS", 0.1)
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=True)
    numbering = Numbering(response_id, 0)
    body = initial_body(response_id, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    tail.publish(numbering.seal([{"type": CREATED, "response": body}]))
    reader = Recorder()
    pumping = asyncio.create_task(pump.pump(reader, response_id, -1, ResponsesView()))
    for _ in range(25):
        await asyncio.sleep(0.02)  # less than the heartbeat: that is the case under test
        tail.publish(numbering.seal([{"type": "hermes.tool.progress", "call_id": "c", "text": "x"}]))
    tail.publish(numbering.seal([{"type": COMPLETED, "response": {**body, "status": "completed"}}]))
    await pumping
    assert reader.chunks[1:-2].count(b": keepalive\n\n") >= 2


async def test_a_reader_hears_heartbeats_while_the_model_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "HEARTBEAT_SECS", 0.02)
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=True)
    numbering = Numbering(response_id, 0)
    body = initial_body(response_id, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    tail.publish(numbering.seal([{"type": CREATED, "response": body}]))
    reader = Recorder()
    pumping = asyncio.create_task(pump.pump(reader, response_id, -1, ResponsesView()))
    async with asyncio.timeout(10):
        while reader.chunks.count(b": keepalive\n\n") < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    tail.publish(numbering.seal([{"type": COMPLETED, "response": {**body, "status": "completed"}}]))
    await pumping
