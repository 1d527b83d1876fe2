"""Reads the events of a streamed answer: text that is taken at once wakes no task.

Resuming the task of a turn, with the generators of all its layers, costs more than the text of a
read. So what arrives while the task waits is read in a callback of the event loop. The task goes on
with the first events that are not taken there.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable

from gateway_app.providers.openai.sse import Batch, Event, EventSplitter
from gateway_app.providers.openai.transport import ResponseBody
from gateway_app.providers.openai.watchdog import Watchdog

# Takes all events of a read and returns True, or takes none of them.
Takes = Callable[[list[Event]], bool]


class EventReader:
    def __init__(
        self,
        body: ResponseBody,
        watchdog: Watchdog,
        is_last: Callable[[Event], bool],
        takes: Takes | None,
    ) -> None:
        self._body = body
        self._watchdog = watchdog
        self._is_last = is_last
        self._takes = takes
        self._splitter = EventSplitter()
        self._loop = asyncio.get_running_loop()
        self._found: asyncio.Future[Batch] = self._loop.create_future()

    async def batches(self) -> AsyncGenerator[list[Event]]:
        """The events of each read that are not taken, up to the last event of the answer."""
        while True:
            batch = await self._next_batch()
            if batch.events:
                yield batch.events
            if batch.failure is not None:
                raise batch.failure
            if batch.is_over:
                return
            self._watchdog.note_events()

    async def _next_batch(self) -> Batch:
        self._watchdog.begin_wait()
        self._found = self._loop.create_future()
        self._read_on()
        try:
            return await self._found
        finally:
            self._body.forget_callback()
            self._watchdog.end_wait()
            if self._found.done() and not self._found.cancelled():
                self._found.exception()  # asyncio logs one that a cancelled task does not read

    def _read_on(self) -> None:
        """Read what has arrived; wait for more unless the task has to go on."""
        try:
            while (piece := self._body.read_now()) is not None:
                batch = self._batch_of(piece)
                if not self._is_taken(batch):
                    self._found.set_result(batch)
                    return
                self._watchdog.note_read_while_waiting(has_events=bool(batch.events))
        except Exception as error:
            self._found.set_exception(error)
            return
        self._body.on_arrival(self._arrived)

    def _arrived(self, arrival: "asyncio.Future[None]") -> None:
        if self._found.done():  # the task was cancelled
            return
        if not arrival.cancelled():
            arrival.exception()  # the body raises it, too
        self._read_on()

    def _batch_of(self, piece: bytes) -> Batch:
        if piece:
            return Batch(self._splitter.feed(piece), self._is_last)
        batch = Batch(self._splitter.end(), self._is_last)
        batch.is_over = True
        return batch

    def _is_taken(self, batch: Batch) -> bool:
        if batch.is_over or batch.failure is not None:
            return False
        if not batch.events:
            return True
        return self._takes is not None and self._takes(batch.events)
