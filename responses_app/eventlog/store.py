"""The event store of this process: the writer, the tails, and the one way to read."""

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connection, connections, transaction

from responses_app.eventlog import snapshots
from responses_app.eventlog.availability import run_query
from responses_app.eventlog.jobs import Append, Call, Fenced
from responses_app.eventlog.positions import newest_positions, position_of_sequence
from responses_app.eventlog.segments import (
    Segment,
    read_finals,
    read_last,
    read_on,
    stamped,
    up_to_end,
)
from responses_app.eventlog.snapshots import final_body
from responses_app.eventlog.tails import Tail, Tails
from responses_app.eventlog.throttled_log import Complaint
from responses_app.eventlog.watcher import Watcher
from responses_app.eventlog.writer import Writer
from responses_app.models import Response
from responses_app.postgresql.threads import limit_waits
from responses_app.protocol.errors import CursorAhead, ResponseInterrupted, StorageUnavailable
from responses_app.protocol.response_object import ResponseBody

T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY_SECS = 0.5  # between tries while the database is away
LAST_LOOK_SECS = (
    0.2  # a database that hangs must not keep readers from being told that this process ends
)
READ_THREADS = 4
CLOSE_SECS = 10
IDLE_SECS = 60.0  # of a reader that has no connection to keep warm


class EventStore:
    def __init__(self) -> None:
        self.process_id = secrets.token_hex(8)  # who holds a lease
        self.writer = Writer()
        self.tails = Tails()
        self._is_dismissing = False
        self._looking: set[asyncio.Timeout] = set()
        self._later: set[asyncio.Task[None]] = set()
        self._away = Complaint(logger, "Work waits for the database")
        self._readers = ThreadPoolExecutor(
            READ_THREADS, thread_name_prefix="database-reader", initializer=limit_waits
        )
        self.watcher = Watcher(self._find_reach, self._write_notes, self._away)

    def close(self) -> None:
        """Commit what is pending and give every connection back."""
        self.writer.stop()
        all_there = threading.Barrier(READ_THREADS)  # so that each thread closes its own

        def leave() -> None:
            all_there.wait(CLOSE_SECS)
            connections.close_all()

        for leaving in [self._readers.submit(leave) for _ in range(READ_THREADS)]:
            leaving.result()
        self._readers.shutdown()

    # -- writing ------------------------------------------------------------------------
    def append(self, segment: Segment, tail: Tail, on_refused: Callable[[Exception], None]) -> None:
        """Store a segment and show it to readers once it is safe; does not wait."""
        if not tail.is_volatile:
            self.writer.submit(Append(segment, tail.publish, on_refused))
        elif tail.newest is not None and tail.newest.is_final:
            on_refused(Fenced(segment.response_id))
        else:
            tail.publish(stamped(segment))

    def submit(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> "Future[T]":
        """Run ``work`` in a transaction of the writer; ``then`` runs on the event loop after the commit.

        With ``response_id`` it never overtakes an append to that response that was submitted before.
        A process without a running writer (a command, a shell) does the work itself; other
        processes notice by their own polls.
        """
        job = Call(work, then, response_id)
        if self.writer.is_running:
            self.writer.submit(job)
        else:
            with transaction.atomic():
                job.future.set_result(work())
        return job.future

    async def write(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> T:
        if (
            not self.writer.is_running
        ):  # it has ended: whoever still works will go on at the next start
            raise StorageUnavailable("the server is shutting down")
        return await asyncio.wrap_future(self.submit(work, then, response_id))

    async def insist(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> T:
        """``write`` for those who can't give up: tried until the database takes it."""
        return await self._until_available(lambda: self.write(work, then, response_id))

    def write_later(self, work: Callable[[], T], then: Callable[[T], None] | None = None) -> None:
        """On the event loop, does not wait: for what must happen once the database is back."""
        task = asyncio.get_running_loop().create_task(self._write_while_running(work, then))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _write_while_running(
        self, work: Callable[[], T], then: Callable[[T], None] | None
    ) -> None:
        while self.writer.is_running:
            try:
                await self.write(work, then)
                return
            except StorageUnavailable as error:
                self._away.say(error)
                await asyncio.sleep(RETRY_SECS)

    async def _until_available(self, attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await attempt()
            except StorageUnavailable as error:
                self._away.say(error)
                await asyncio.sleep(RETRY_SECS)

    # -- who reads ----------------------------------------------------------------------
    def note_access(self, response_id: str) -> None:
        """A response is used: it is evicted after those that are not; from any thread, does not wait."""
        if self.writer.loop is not None and self.writer.is_running:
            self.watcher.note(response_id, self.writer.loop)
        else:
            self.submit(lambda: Response.objects.note_access([response_id]))

    def publish_final(self, tail: Tail, segment: Segment) -> None:
        tail.publish(segment)
        snapshots.forget(segment.response_id)

    def forget(self, response_id: str) -> None:
        """On the event loop: the log may have been erased; its readers here look at once."""
        snapshots.forget(response_id)
        tail = self.tails.find(response_id)
        if tail is not None:
            tail.note_erased()

    async def _write_notes(self, response_ids: list[str]) -> list[str]:
        """Not among the writer's other work on PostgreSQL: a transaction that holds nothing else blocks no append."""
        if connection.vendor == "sqlite":
            return await self.write(lambda: Response.objects.note_access(response_ids))
        return await self.read(Response.objects.note_access, response_ids)

    async def _find_reach(self, response_ids: list[str]) -> dict[str, int]:
        return await self.read(newest_positions, response_ids)

    # -- reading ------------------------------------------------------------------------
    async def read(self, query: Callable[..., T], *args: Any) -> T:
        """A database query beside the event loop; Channels' own helper shares one thread for all."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, lambda: run_query(query, *args)
        )

    async def insist_read(self, query: Callable[..., T], *args: Any) -> T:
        return await self._until_available(lambda: self.read(query, *args))

    async def read_after(
        self, response_id: str, position: int, idle_secs: float
    ) -> AsyncIterator[Sequence[Segment]]:
        """Everything behind a position, then whatever comes, until the final event.

        Yields an empty batch when nothing came for ``idle_secs``, so that the caller can keep its
        connection warm. Raises ResponseInterrupted when this process ends before the response does.
        """
        tail = self.tails.of(response_id)
        with self.watcher.watching(response_id, tail), tail.attended():
            async for segments in self._follow(tail, response_id, position, idle_secs):
                yield segments

    async def _follow(
        self, tail: Tail, response_id: str, position: int, idle_secs: float
    ) -> AsyncIterator[Sequence[Segment]]:
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        must_look = not tail.is_fed_here or tail.after(position) is None
        is_away = is_last_look = False
        while True:
            version = tail.version
            segments: Sequence[Segment] | None = tail.after(position)
            if not segments and (must_look or tail.reach > position or tail.is_erased):
                segments, is_away = await self._look(tail, response_id, position)
                must_look = is_away or bool(segments)  # until the database has nothing more
                if segments is None:
                    return
            if segments:
                segments = up_to_end(segments)
                position = segments[-1].last_position
                idle_since = loop.time()
                yield segments
                if segments[-1].is_final:
                    return
                continue
            if self._is_dismissing:
                if is_last_look or is_away or tail.is_volatile:
                    raise ResponseInterrupted(response_id)
                is_last_look = must_look = True
                continue
            idle = loop.time() - idle_since
            if idle >= idle_secs:
                idle_since, idle = loop.time(), 0.0
                yield ()
            await tail.wait(version, idle_secs - idle)

    async def _look(
        self, tail: Tail, response_id: str, position: int
    ) -> tuple[list[Segment] | None, bool]:
        """``read_on``, and whether the database was away: it comes back, and the reader is still here."""
        version = tail.version
        limit = asyncio.timeout(LAST_LOOK_SECS if self._is_dismissing else None)
        self._looking.add(limit)
        try:
            async with limit:
                found = await self.read(read_on, response_id, position)
        except TimeoutError:
            return [], True
        except StorageUnavailable as error:
            self._away.say(error)
            self.watcher.retry(tail)
            return [], True
        finally:
            self._looking.discard(limit)
        if found:
            tail.note_stored(found[-1].last_position)
        elif found is not None and tail.version == version:
            tail.note_read(position)
        return found, False

    def dismiss_readers(self) -> None:
        """This process ends: a reader that has all there is does not wait for more."""
        self._is_dismissing = True
        for limit in self._looking:
            limit.reschedule(asyncio.get_running_loop().time() + LAST_LOOK_SECS)
        self.tails.wake_all()

    async def position_after(self, response_id: str, sequence: int) -> int:
        """The position to read on from when a client has seen ``sequence``."""
        found = await self.read(position_of_sequence, response_id, sequence)
        if found is not None:
            return found
        newest = await self.read(read_last, response_id)
        raise CursorAhead(sequence, newest.next_sequence - 1 if newest else -1)

    async def wait_final(self, response_id: str) -> ResponseBody:
        """The response as its terminal event tells it, however long that takes."""
        final: Segment | None = None
        async for segments in self.read_after(response_id, -1, IDLE_SECS):
            final = segments[-1] if segments else final
        assert final is not None
        return final_body(final)


def final_bodies(response_ids: Sequence[str]) -> dict[str, ResponseBody]:
    """Of many ended responses at once."""
    return {final.response_id: final_body(final) for final in read_finals(response_ids)}
