"""The event store of this process: the writer, the tails, and the one way to read."""

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections, transaction

from responses_app.errors import CursorAhead, GoesOnLater, StorageUnavailable
from responses_app.eventlog.availability import run_query
from responses_app.eventlog.complaints import Complaint
from responses_app.eventlog.jobs import Append, Call, Fenced
from responses_app.eventlog.segments import (
    Segment,
    position_of_sequence,
    read_finals,
    read_last,
    read_on,
    read_whole,
    stamped,
    up_to_end,
)
from responses_app.eventlog.tails import Tail, Tails
from responses_app.eventlog.writer import Writer
from responses_app.events import decode_frame, decode_frames, split_frames
from responses_app.fold import ResponseBody, fold
from responses_app.models import Response
from responses_app.models.responses import access_step
from responses_app.postgresql.threads import limit_waits

T = TypeVar("T")

logger = logging.getLogger(__name__)

POLL_SECS = 1.0  # how late a reader is when the hint of another process was lost
RETRY_SECS = 0.5  # between tries while the database is away
LAST_LOOK_SECS = 0.2  # a database that hangs must not keep readers from being told that this process ends
READ_THREADS = 4
CLOSE_SECS = 10


class EventStore:
    def __init__(self) -> None:
        self.process_id = secrets.token_hex(8)  # who holds a lease
        self.writer = Writer()
        self.tails = Tails()
        self._is_dismissing = False
        self._looking: set[asyncio.Timeout] = set()
        self._away = Complaint(logger, "Work waits for the database")
        self._readers = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="database-reader", initializer=limit_waits)

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

    async def write(self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = "") -> T:
        if not self.writer.is_running:  # it has ended: whoever still works will go on at the next start
            raise StorageUnavailable("the server is shutting down")
        return await asyncio.wrap_future(self.submit(work, then, response_id))

    async def insist(self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = "") -> T:
        """``write`` for those who can't give up: tried until the database takes it."""
        return await self._until_available(lambda: self.write(work, then, response_id))

    async def _until_available(self, attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await attempt()
            except StorageUnavailable as error:
                self._away.say(error)
                await asyncio.sleep(RETRY_SECS)

    # -- reading ------------------------------------------------------------------------
    async def read(self, query: Callable[..., T], *args: Any) -> T:
        """A database query beside the event loop; Channels' own helper shares one thread for all."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: run_query(query, *args))

    async def insist_read(self, query: Callable[..., T], *args: Any) -> T:
        return await self._until_available(lambda: self.read(query, *args))

    async def read_after(self, response_id: str, position: int, idle_secs: float) -> AsyncIterator[Sequence[Segment]]:
        """Everything behind a position, then whatever comes, until the final event.

        Yields an empty batch when nothing came for ``idle_secs``, so that the caller can keep its
        connection warm. Raises GoesOnLater when this process ends before the response does.
        """
        tail = self.tails.of(response_id)
        with tail.attended():
            async for segments in self._follow(tail, response_id, position, idle_secs):
                yield segments

    async def _follow(
        self, tail: Tail, response_id: str, position: int, idle_secs: float
    ) -> AsyncIterator[Sequence[Segment]]:
        loop = asyncio.get_running_loop()
        idle_since = noted_at = loop.time()
        must_look = is_away = False
        while True:
            version = tail.version
            segments = tail.after(position)
            if segments is None or (must_look and not segments):
                segments, is_away = await self._look(response_id, position)
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
                if must_look or is_away or tail.is_volatile:
                    raise GoesOnLater(response_id)
                must_look = True
                continue
            idle = loop.time() - idle_since
            if idle >= idle_secs:
                idle_since, idle = loop.time(), 0.0
                yield ()
            patience = idle_secs - idle
            if not tail.is_fed_here:
                noted_at = self._note_reader(response_id, noted_at)
            polls = is_away or not tail.is_fed_here
            await tail.wait(version, min(POLL_SECS, patience) if polls else patience)
            must_look = polls and tail.version == version  # nobody here told: ask the database

    def _note_reader(self, response_id: str, noted_at: float) -> float:
        """Tell the process that writes this log, from time to time, that somebody reads it."""
        now = asyncio.get_running_loop().time()
        if now - noted_at < access_step().total_seconds() or not self.writer.is_running:
            return noted_at
        self.submit(lambda: Response.objects.note_access(response_id))
        return now

    async def _look(self, response_id: str, position: int) -> tuple[list[Segment] | None, bool]:
        """``read_on``, and whether the database was away: it comes back, and the reader is still here."""
        limit = asyncio.timeout(LAST_LOOK_SECS if self._is_dismissing else None)
        self._looking.add(limit)
        try:
            async with limit:
                return await self.read(read_on, response_id, position), False
        except TimeoutError:
            return [], True
        except StorageUnavailable as error:
            self._away.say(error)
            return [], True
        finally:
            self._looking.discard(limit)

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
        async for segments in self.read_after(response_id, -1, POLL_SECS):
            final = segments[-1] if segments else final
        assert final is not None
        return final_body(final)


def current_body(response_id: str) -> ResponseBody | None:
    """The response as the stored events tell it now; None when there are none."""
    last = read_last(response_id)
    if last is None:
        return None
    if last.is_final:
        return final_body(last)
    return fold(decode_frames(segment.data for segment in read_whole(response_id)))


def final_bodies(response_ids: Sequence[str]) -> dict[str, ResponseBody]:
    """Of many ended responses at once."""
    return {final.response_id: final_body(final) for final in read_finals(response_ids)}


def final_body(final: Segment) -> ResponseBody:
    """A terminal event carries the whole response: nothing before it need be folded."""
    body: ResponseBody = decode_frame(split_frames(final.data)[-1])["response"]
    return body
