"""Dispatch between processes: turns go to the queue of the workers, cancellations to all."""

import asyncio
import logging
from collections import deque
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer

from gateway_app.runtime.dispatch import CHANNEL, InProcessDispatcher, SlotReservation
from gateway_app.runtime.pins import is_only_here, pins
from gateway_app.runtime.runner import Runner
from gateway_app.runtime.workspaces import is_pinning, known_folder_name
from responses_app.eventlog.hints import hints
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.protocol.errors import SERVER, ApiError

logger = logging.getLogger(__name__)
queue_log = ThrottledLog(
    logger, "The queue of turns does not work; the sweeps of the workers find them"
)

QUEUE = "queue"  # the channel layer from which one worker takes each message
SEND_SECS = 2.0
PAUSE_SECS = 0.5  # after a failure; meanwhile the sweep finds what waits
MAX_WAITING = 10_000
# The client of Redis may swallow a cancellation, and would wait on: the loop looks again by then.
RECEIVE_SECS = 10.0


class GenerationOff(ApiError):
    status = 503
    type = SERVER
    code = "generation_off"
    headers = {"x-should-retry": "false"}

    def __init__(self) -> None:
        super().__init__(
            "This process serves pages and reads only (HERMES_DISPATCH=none). "
            "Send requests that generate to the gateway."
        )


class ClusterDispatcher(InProcessDispatcher):
    """What this process claims stays here; other turns go to the workers."""

    def __init__(self) -> None:
        super().__init__()
        self._queue = TurnQueue()

    def reserve(self, owner_id: int, *, is_stored: bool = True) -> SlotReservation | None:
        if is_stored and not self._takes_stored:
            return None
        return super().reserve(owner_id, is_stored=is_stored)

    def generate(self, response_id: str, owner_id: int) -> None:
        if self._takes_stored or is_only_here(response_id):
            super().generate(response_id, owner_id)
        else:
            self._queue.send(response_id, owner_id)

    def cancel(self, response_id: str) -> None:
        if self.runner is not None and response_id in self.runner.runs:
            self.runner.cancel(response_id)
            return
        hints.note_cancelled(response_id)
        super().cancel(response_id)  # settles what no process runs, also where no worker lives

    @property
    def _takes_stored(self) -> bool:
        return self.runner is not None and self.runner.claims.takes_stored


class PagesDispatcher(ClusterDispatcher):
    """Of a process that generates nothing."""

    def reserve(self, owner_id: int, *, is_stored: bool = True) -> SlotReservation | None:
        raise GenerationOff

    def cancel(self, response_id: str) -> None:
        hints.note_cancelled(response_id)


class TurnQueue:
    """Sends turns to the next free worker; never waits, and drops what Redis does not take."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_WAITING)
        self._sender: asyncio.Task[None] | None = None

    def send(self, response_id: str, owner_id: int, channel: str = CHANNEL) -> None:
        if not hints.is_on:
            return
        message = {"type": "generate.run", "response_id": response_id, "owner_id": owner_id}
        self._waiting.append((channel, message))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._deliver())

    def forward(self, folder: str, response_id: str, owner_id: int) -> None:
        """To the workers that have this folder of workspaces."""
        self.send(response_id, owner_id, _channel_of(folder))

    async def _deliver(self) -> None:
        layer = get_channel_layer(QUEUE)
        assert layer is not None
        while self._waiting:
            channel, message = self._waiting.popleft()
            try:
                async with asyncio.timeout(SEND_SECS):
                    await layer.send(channel, message)
            except ChannelFull as error:
                queue_log.error(error)
            except Exception as error:  # whatever the client of Redis raises
                queue_log.error(error)
                self._waiting.clear()


async def take_turns(runner: Runner, channel: str = CHANNEL) -> None:
    """In a worker: take a turn from the queue whenever a slot is free, so that none takes everything."""
    layer = get_channel_layer(QUEUE)
    assert layer is not None
    asyncio.get_running_loop().set_exception_handler(note_unawaited)
    task = asyncio.current_task()
    assert task is not None
    while not task.cancelling():
        await runner.wait_for_slot()
        try:
            async with asyncio.timeout(RECEIVE_SECS):
                message = await layer.receive(channel)
            runner.hint(message["response_id"], message["owner_id"])
        except TimeoutError:
            continue
        except Exception as error:  # whatever the client of Redis raises, or a message lacks
            queue_log.error(error)
            await asyncio.sleep(PAUSE_SECS)


def note_unawaited(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The layer cleans up in tasks that nothing awaits: without Redis they fail, which is one line."""
    from redis.exceptions import RedisError  # a server without Redis does not load it

    error = context.get("exception")
    if isinstance(error, RedisError):
        queue_log.error(error)
    else:
        loop.default_exception_handler(context)


async def take_pinned_turns(runner: Runner) -> None:
    """In a worker: turns of owners whose files are here, which other workers have taken and passed on."""
    if is_pinning():
        loop = asyncio.get_running_loop()
        queue = TurnQueue()

        def forward(folder: str, response_id: str, owner_id: int) -> None:
            loop.call_soon_threadsafe(queue.forward, folder, response_id, owner_id)

        pins.forward = forward
        await take_turns(runner, _channel_of(known_folder_name()))


def _channel_of(folder: str) -> str:
    return f"{CHANNEL}.{folder}"
