"""The layer in this process: no subscription is left, and no bad message ends a loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.test import override_settings
from redis.exceptions import ConnectionError

from gateway_app.config.redis import channel_layers
from gateway_app.operations.doctor.remote import layer_round_trip
from gateway_app.runtime import cluster_dispatch
from gateway_app.runtime.cluster_dispatch import QUEUE, RECEIVE_SECS, take_turns
from gateway_app.runtime.dispatch import CHANNEL
from gateway_app.runtime.hint_exchange import follow_hints
from gateway_app.runtime.roles import Role
from gateway_app.runtime.runner import Runner
from responses_app.eventlog.hints import GROUP, WORKERS, Hint, SharedTail, send_hint
from responses_app.eventlog.store import event_store
from responses_app.eventlog.throttled_log import ThrottledLog
from tests.support.cluster import RedisServer

pytestmark = [pytest.mark.any_database, pytest.mark.timeout(30)]
SECRET = "a secret of these tests"


@pytest.fixture
async def layer(redis: RedisServer) -> AsyncIterator[Any]:
    with override_settings(CHANNEL_LAYERS=channel_layers(redis.url, SECRET)):
        layer: Any = get_channel_layer()
        yield layer
        await layer.flush()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - another task makes it true
            await asyncio.sleep(0.01)


async def test_a_check_of_the_layer_leaves_no_subscription(layer: Any, redis: RedisServer) -> None:
    for _ in range(3):
        await layer_round_trip(5)
    assert not layer.channels
    assert redis.execute("PUBSUB", "CHANNELS", f"{layer.prefix}*") == []


@override_settings(CHANNEL_LAYERS=channel_layers("redis://127.0.0.1:1/0", SECRET))
async def test_a_check_without_redis_leaves_no_channel() -> None:
    layer: Any = get_channel_layer()
    with pytest.raises(ConnectionError, match="connecting"):
        await layer_round_trip(5)
    assert not layer.channels
    await layer.flush()


async def test_a_hint_that_cannot_be_read_does_not_end_the_exchange(
    layer: Any,
    redis: RedisServer,
) -> None:
    following = asyncio.create_task(follow_hints(Runner(Role.WEB)))
    await until(lambda: redis.subscribers() and layer.groups)
    subscribed = dict(layer.channels)
    for unreadable in (b"no message", layer.serialize({"type": "hint", "sender": "a newer version"})):
        redis.execute("PUBLISH", f"{layer.prefix}__group__{GROUP}", unreadable)
    tail = SharedTail()
    event_store.tails._tails["resp_1"] = tail
    with tail.reading():
        hint = Hint(stored={"resp_1": 7}, cancelled=[], is_key_revoked=False)
        await send_hint(hint, "another process")
        await until(lambda: tail.newest_position == 7)
    assert layer.channels == subscribed
    following.cancel()


async def test_events_that_no_process_of_the_cluster_has_sealed_are_not_taken(
    layer: Any,
    redis: RedisServer,
) -> None:
    """A program that can write to Redis can't write in a stream."""
    following = asyncio.create_task(follow_hints(Runner(Role.WEB)))
    await until(lambda: redis.subscribers() and layer.groups)
    tail = SharedTail()
    event_store.tails._tails["resp_1"] = tail
    with tail.reading():
        hint = Hint(stored={"resp_1": 7}, cancelled=[], is_key_revoked=False, segments=b"x" * 100)
        await send_hint(hint, "another process")
        await until(lambda: tail.newest_position == 7)
    assert tail.newest is None
    following.cancel()


async def test_a_worker_gets_cancellations_and_no_positions(layer: Any, redis: RedisServer) -> None:
    runner = CancelledRunner(Role.WORKER)
    following = asyncio.create_task(follow_hints(runner))
    await until(lambda: redis.subscribers(WORKERS))
    assert redis.subscribers(GROUP) == 0
    await send_hint(Hint(stored={"resp_1": 7}, cancelled=["resp_1"], is_key_revoked=False), "a web process")
    await until(lambda: runner.cancelled)
    assert runner.cancelled == ["resp_1"]
    following.cancel()


async def test_a_turn_that_cannot_be_read_does_not_stop_a_worker(
    layer: Any,
    redis: RedisServer,
) -> None:
    queue: Any = get_channel_layer(QUEUE)
    runner = HintedRunner(Role.WORKER)
    await queue.send(CHANNEL, {"type": "generate.run"})
    await queue.send(CHANNEL, {"type": "generate.run", "response_id": "resp_1", "owner_id": 1})
    taking = asyncio.create_task(take_turns(runner))
    await until(lambda: runner.hinted)
    assert runner.hinted == ["resp_1"]
    assert not taking.done()
    taking.cancel()


@override_settings(CHANNEL_LAYERS={QUEUE: {"BACKEND": "tests.support.swallowing_layer.SwallowingLayer"}})
async def test_a_swallowed_cancellation_ends_the_loop_all_the_same() -> None:
    layer: Any = get_channel_layer(QUEUE)
    taking = asyncio.create_task(take_turns(HintedRunner(Role.WORKER)))
    await until(lambda: layer.is_receiving)
    taking.cancel()
    async with asyncio.timeout(RECEIVE_SECS + 5):
        await asyncio.wait({taking})


class CancelledRunner(Runner):
    """Notes the cancellations; there are no turns."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.cancelled: list[str] = []

    def cancel(self, response_id: str) -> None:
        self.cancelled.append(response_id)


class HintedRunner(Runner):
    """Notes the hints instead of claiming the turns, which are in no database."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.hinted: list[str] = []

    def hint(self, response_id: str, owner_id: int) -> None:
        self.hinted.append(response_id)


@pytest.mark.parametrize(("error", "has_traceback"), [(ConnectionError("gone"), False), (ValueError("no"), True)])
async def test_a_task_of_the_layer_that_fails_without_redis_is_one_line(
    error: Exception, has_traceback: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_dispatch, "queue_log", ThrottledLog(cluster_dispatch.logger, "The queue does not work"))
    context = {"message": "Task exception was never retrieved", "exception": error}
    cluster_dispatch.note_unawaited(asyncio.get_running_loop(), context)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert bool(record.exc_info) == has_traceback
