"""The event store of this process: appends, and the one way to read a log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from responses_app.database import Database, database
from responses_app.eventlog import snapshots
from responses_app.eventlog.followers import Alarm, Follower, Takes
from responses_app.eventlog.gathering import SHARED
from responses_app.eventlog.hints import SharedTail, hints
from responses_app.eventlog.jobs import Append, Fenced
from responses_app.eventlog.positions import position_of_sequence
from responses_app.eventlog.reading import (
    READ_SEGMENTS,
    Page,
    next_limit,
    read_last,
    read_on,
)
from responses_app.eventlog.remote_logs import RemoteLogs
from responses_app.eventlog.segments import Segment, stamped
from responses_app.eventlog.tails import Tail, Tails
from responses_app.eventlog.watcher import Watcher
from responses_app.models import Response
from responses_app.protocol.errors import CursorAhead, ResponseInterrupted, StorageUnavailable

LAST_READ_SECS = 0.2  # at shutdown: a database that hangs must not delay the reader's notice
IDLE_SECS = 60.0  # for a reader without a connection to keep alive


class EventStore:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.tails = Tails()
        self.remote_logs = RemoteLogs(database, self.tails)
        self.watcher = Watcher(database, self.remote_logs)
        self._is_closing = False
        self._read_timeouts: set[asyncio.Timeout] = set()

    def share(self) -> None:
        """Before the first response: other processes read the logs of this one, and it reads theirs."""
        self.tails.kind = SharedTail
        self.database.writer.pace = SHARED
        hints.start()

    # -- writing ------------------------------------------------------------------------
    def append(
        self,
        segment: Segment,
        tail: Tail,
        on_refused: Callable[[Exception], None],
        *,
        may_gather: bool = False,
    ) -> None:
        """Store a segment and publish it to readers after the commit; does not wait.

        One that may gather waits for others, unless a reader waits for it.
        """
        if not tail.is_volatile:
            is_urgent = tail.is_followed or not may_gather
            append = Append(segment, tail.publish, on_refused, is_urgent)
            self.database.writer.submit(append)
        elif tail.newest is not None and tail.newest.is_final:
            on_refused(Fenced(segment.response_id))
        else:
            tail.publish(stamped(segment))

    def publish_final(self, tail: Tail, segment: Segment) -> None:
        tail.publish(segment)
        snapshots.forget(segment.response_id)

    def forget(self, response_id: str) -> None:
        """On the event loop: the log may have been erased; its readers check at once."""
        snapshots.forget(response_id)
        tail = self.tails.find(response_id)
        if tail is not None:
            tail.note_erased()

    def note_access(self, response_id: str) -> None:
        """Note that a response is used, so that it is evicted late; from any thread, does not wait."""
        writer = self.database.writer
        if writer.loop is not None and writer.is_running:
            self.watcher.note(response_id, writer.loop)
        else:
            self.database.submit(partial(Response.objects.note_access, [response_id]))

    # -- reading ------------------------------------------------------------------------
    async def read_after(
        self,
        response_id: str,
        position: int,
        idle_secs: float,
        *,
        follows_events: bool = True,
        takes: Takes | None = None,
    ) -> AsyncIterator[Sequence[Segment]]:
        """Stored events after a position, then new ones as they are committed, until the final event.

        While the caller waits, it does not get the new ones that ``takes`` has taken.
        Yields an empty batch when nothing came for ``idle_secs``, so that the caller can keep its
        connection alive. Raises ResponseInterrupted when this process ends before the response.
        """
        tail = self.tails.of(response_id)
        with (
            self.watcher.watching(response_id, tail),
            tail.reading(follows_events=follows_events),
            Alarm(idle_secs) as alarm,
        ):
            follower = Follower(takes, alarm)
            async for segments in self._follow(tail, response_id, position, follower):
                yield segments
                del segments  # they may be long: gone before the next ones are read

    async def _follow(
        self, tail: Tail, response_id: str, position: int, follower: Follower
    ) -> AsyncIterator[Sequence[Segment]]:
        must_query = not tail.is_written_here or tail.after(position) is None
        is_unavailable = is_last_read = was_last_page = False
        limit = READ_SEGMENTS
        while True:
            version = tail.version
            segments: Sequence[Segment] | None = None
            page: Page | None = None
            if must_query or tail.newest_position > position or tail.is_erased:
                segments = tail.after(position)
                if not segments:
                    page, is_unavailable = await self._query(tail, response_id, position, limit)
                    if page is None:
                        return
                    # A log may grow with every read. After two pages that reach its end, hints and
                    # the poll announce what comes, for all readers at once.
                    is_followed = was_last_page and not page.has_more
                    must_query = is_unavailable or (bool(page) and not is_followed)
                    was_last_page = not page.has_more
                    limit = next_limit(limit, page)
                    segments = page
            if segments:
                position = segments[-1].last_position
                follower.alarm.reset()
                yield segments
                if segments[-1].is_final:
                    return
                tail.note_taken(position)
                continue
            if self._is_closing:
                if is_last_read or is_unavailable or tail.is_volatile:
                    raise ResponseInterrupted(response_id)
                is_last_read = must_query = True
                continue
            if follower.alarm.has_rung:
                follower.alarm.reset()
                yield ()
            follower.position = position
            await tail.wait(version, follower)
            position = follower.position

    async def _query(
        self, tail: Tail, response_id: str, position: int, limit: int
    ) -> tuple[Page | None, bool]:
        """``read_on``, and whether the database was unavailable: then the reader waits for it."""
        version = tail.version
        timeout = asyncio.timeout(None)
        if self._is_closing:
            timeout = asyncio.timeout(LAST_READ_SECS)
        self._read_timeouts.add(timeout)
        try:
            async with timeout:
                found = await self.database.read(read_on, response_id, position, limit)
        except TimeoutError:
            return Page(), True
        except StorageUnavailable as error:
            self.database.unavailable_log.error(error)
            self.watcher.retry(tail)
            return Page(), True
        finally:
            self._read_timeouts.discard(timeout)
        if found:
            if tail.newest is not None and not tail.is_written_here:
                tail.take_over(found)  # otherwise each of its other readers would query, too
            tail.note_stored(found[-1].last_position)
        elif found is not None and tail.version == version:
            tail.note_read(position)
        return found, False

    def dismiss_readers(self) -> None:
        """This process ends: a reader that has every stored event does not wait for more."""
        self._is_closing = True
        deadline = asyncio.get_running_loop().time() + LAST_READ_SECS
        for timeout in self._read_timeouts:
            timeout.reschedule(deadline)
        self.tails.wake_all()

    async def position_after(self, response_id: str, sequence: int) -> int:
        """The position to read on from when a client has seen ``sequence``."""
        found = await self.database.read(position_of_sequence, response_id, sequence)
        if found is not None:
            return found
        newest = await self.database.read(read_last, response_id)
        newest_sequence = -1
        if newest is not None:
            newest_sequence = newest.next_sequence - 1
        raise CursorAhead(sequence, newest_sequence)

    async def wait_final(self, response_id: str) -> Segment:
        """The segment that ends with the terminal event, however long that takes."""
        final: Segment | None = None
        log = self.read_after(response_id, -1, IDLE_SECS, follows_events=False)
        async for segments in log:
            if segments:
                final = segments[-1]
        assert final is not None
        return final


event_store = EventStore(database)
