"""From the log to a connection."""

import asyncio

import pytest

from responses_app.eventlog import Numbering
from responses_app.eventlog.store import event_store
from responses_app.protocol.events import COMPLETED, CREATED, TEXT_DELTA, Event
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


class PromptRecorder(Recorder):
    """A connection to which events are passed without a task, while it is ready."""

    is_ready = True

    @property
    def sends_at_once(self) -> bool:
        return self.is_ready

    def send_at_once(self, chunk: bytes) -> None:
        assert chunk
        self.chunks.append(chunk)


@pytest.mark.parametrize("kind", [Recorder, PromptRecorder])
async def test_a_reader_hears_a_heartbeat_while_the_log_is_busy_with_what_it_does_not_show(
    monkeypatch: pytest.MonkeyPatch, kind: type[Recorder]
) -> None:
    monkeypatch.setattr(pump, "HEARTBEAT_SECS", 0.1)
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=True)
    numbering = Numbering(response_id, 0)
    body = initial_body(response_id, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    tail.publish(numbering.seal([{"type": CREATED, "response": body}]))
    reader = kind()
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


async def test_events_keep_their_order_whether_they_wake_the_task_or_not() -> None:
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=True)
    numbering = Numbering(response_id, 0)
    body = initial_body(response_id, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    tail.publish(numbering.seal([{"type": CREATED, "response": body}]))
    reader = PromptRecorder()
    pumping = asyncio.create_task(pump.pump(reader, response_id, -1, ResponsesView()))
    sent_at_once = 0
    for number in range(60):
        if number % 5 == 0:
            await asyncio.sleep(0)  # the task may be anywhere between two waits
            await asyncio.sleep(0)
        reader.is_ready = number % 7 > 1
        before = len(reader.chunks)
        tail.publish(numbering.seal([delta(number)]))
        sent_at_once += len(reader.chunks) - before
    tail.publish(numbering.seal([{"type": COMPLETED, "response": {**body, "status": "completed"}}]))
    await pumping
    log = b"".join(segment.data for segment in tail.whole())
    assert b"".join(reader.chunks) == log + ResponsesView.done
    assert 0 < sent_at_once < 60


async def test_a_reader_that_is_cancelled_gets_nothing_more() -> None:
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=True)
    numbering = Numbering(response_id, 0)
    reader = PromptRecorder()
    pumping = asyncio.create_task(pump.pump(reader, response_id, -1, ResponsesView()))
    await asyncio.sleep(0.01)
    tail.publish(numbering.seal([delta(0)]))
    assert len(reader.chunks) == 1
    pumping.cancel()
    tail.publish(numbering.seal([delta(1)]))
    await asyncio.wait({pumping})
    tail.publish(numbering.seal([delta(2)]))
    assert len(reader.chunks) == 1


def delta(number: int) -> Event:
    return {
        "type": TEXT_DELTA,
        "item_id": "msg",
        "output_index": 0,
        "content_index": 0,
        "delta": f"word {number} ",
        "logprobs": [],
    }
