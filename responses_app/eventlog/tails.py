"""Tails: the newest events of a response in memory, and the readers that wait for more."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from responses_app.eventlog.followers import Follower, release
from responses_app.eventlog.packed import PackedLog
from responses_app.eventlog.segments import Segment
from responses_app.protocol.items import Item

TAIL_BYTES = 128 * 1024  # a reader further behind reads the database
SEGMENT_COST = 512  # bytes of an object around its data: a slow model makes a segment of every word


@dataclass(frozen=True)
class AdmittedRequest:
    """A request as its admission left it; that of an unstored response is nowhere else."""

    request: dict[str, Any]
    ignored: tuple[str, ...]
    items: list[Item]


class Tail:
    """The newest segments of one response, in memory, and a wake-up for its readers.

    It exists as long as its runner or a reader refers to it. A volatile tail is the whole log of a
    response that is not stored: its events are nowhere else.
    """

    is_always_followed = False

    def __init__(self, *, is_volatile: bool = False) -> None:
        self.is_volatile = is_volatile
        self.unstored_request: AdmittedRequest | None = None
        self.clients: set[str] = set()  # ids of its requests; changed in the writer's thread alone
        self.is_written_here = is_volatile  # if so, no other process commits to the log
        self.newest_position = -1  # the newest one that is known to be stored
        self.is_erased = False
        self.version = 0
        self.readers = 0
        self._followers = 0  # readers that send on each event, not the end alone
        self.is_followed = self.is_always_followed  # if not, a commit may take several events
        self.left_at = 0.0  # when the last reader left, by the clock of this process
        self._segments: deque[Segment] = deque()
        self._packed = PackedLog()  # of a volatile tail: what is older than the segments
        self._bytes = 0
        self._waiters: dict[asyncio.Future[None], Follower] = {}

    def publish(self, segment: Segment) -> None:
        """Only after the commit, in order, on the event loop."""
        self._extend(segment)

    def take_over(self, segments: Sequence[Segment]) -> None:
        """Events that another process has stored; those that are here, or lie behind a gap, are left out."""
        for segment in segments:
            known = self.known_position
            if segment.first_position <= known < segment.last_position:
                segment = segment.after(known)
            if segment.first_position == known + 1:
                self._extend(segment)

    @property
    def known_position(self) -> int:
        """Up to here this tail has the log, or its readers have read it."""
        if self._segments:
            return self._segments[-1].last_position
        return self.newest_position

    def _extend(self, segment: Segment) -> None:
        if self._segments and segment.first_position != self._segments[-1].last_position + 1:
            assert not self.is_volatile, "the events of a volatile tail are nowhere else"
            self._segments.clear()
            self._bytes = 0
        self._segments.append(segment)
        self._bytes += _cost(segment)
        if self._bytes > TAIL_BYTES:
            self._shorten()
        self.newest_position = max(self.newest_position, segment.last_position)
        self._announce(segment)

    def _announce(self, segment: Segment) -> None:
        """Wake the readers that wait, except those that take the segment at once."""
        self.version += 1
        for waiter, follower in list(self._waiters.items()):
            if not waiter.done() and follower.takes(segment):
                self.note_taken(segment.last_position)
            else:
                del self._waiters[waiter]
                release(waiter)

    def _shorten(self) -> None:
        """Drop the oldest segments; of a volatile tail, pack the older half."""
        allowed = TAIL_BYTES
        if self.is_volatile:
            allowed = TAIL_BYTES // 2
        older: list[Segment] = []
        while self._bytes > allowed and len(self._segments) > 1:
            older.append(self._segments.popleft())
            self._bytes -= _cost(older[-1])
        if self.is_volatile and older:
            self._packed.add(older)

    def note_taken(self, position: int) -> None:
        """A reader has the events up to here: alone, it needs none of them again.

        The newest segment stays. A reader that comes later finds the others in the database.
        """
        if self.readers > 1 or self.is_volatile:
            return
        while len(self._segments) > 1 and self._segments[0].last_position <= position:
            self._bytes -= _cost(self._segments.popleft())

    def note_stored(self, position: int) -> None:
        """The database has the log up to this position, whichever process wrote it."""
        if position > self.newest_position:
            self.newest_position = position
            self.wake()

    def note_erased(self) -> None:
        """The log may be erased: its readers query the database."""
        self.is_erased = True
        self.wake()

    def note_read(self, position: int) -> None:
        """A reader has queried the database, which has nothing after this position."""
        self.is_erased = False
        if position > self.newest_position:
            self.note_stored(position)  # other readers may not have read up to here
        else:
            self.newest_position = position

    def after(self, position: int) -> list[Segment] | None:
        """The segments after a position; None when this tail starts later than that.

        A volatile tail always has them; it returns some of them where they are many.
        """
        if not self._segments:
            if self.is_volatile:
                return []
            return None
        if position + 1 < self._segments[0].first_position:
            if self.is_volatile:
                return self._packed.after(position)
            return None
        newest = self._segments[-1]
        if newest.first_position == position + 1:  # what a reader that keeps up looks for
            return [newest]
        found: deque[Segment] = deque()
        for segment in reversed(self._segments):
            if segment.last_position <= position:
                break
            found.appendleft(segment)
        if found and found[0].first_position <= position:
            found[0] = found[0].after(position)
        return list(found)

    def whole(self) -> list[Segment]:
        """Of a volatile tail: the whole log."""
        return self._packed.whole() + list(self._segments)

    @contextmanager
    def reading(self, *, follows_events: bool = True) -> Iterator[None]:
        """Counts as a reader for as long as the block lasts."""
        self.readers += 1
        self._count_follower(follows_events)
        try:
            yield
        finally:
            self._count_follower(-follows_events)
            self.readers -= 1
            self.left_at = time.monotonic()

    def _count_follower(self, change: int) -> None:
        self._followers += change
        self.is_followed = self.is_always_followed or self._followers > 0

    @property
    def newest(self) -> Segment | None:
        if not self._segments:
            return None
        return self._segments[-1]

    def wake(self) -> None:
        self.version += 1
        for waiter in self._waiters:
            release(waiter)
        self._waiters.clear()

    async def wait(self, seen_version: int, follower: Follower) -> None:
        """Until something was published since ``seen_version`` that the follower does not take.

        Or until its alarm rings.
        """
        if self.version != seen_version:
            return
        waiter = follower.alarm.new_waiter()
        self._waiters[waiter] = follower
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)


def _cost(segment: Segment) -> int:
    return segment.size + SEGMENT_COST


class Tails:
    def __init__(self) -> None:
        self.kind = Tail
        self._tails: WeakValueDictionary[str, Tail] = WeakValueDictionary()

    def find(self, response_id: str) -> Tail | None:
        return self._tails.get(response_id)

    def of(self, response_id: str, *, is_volatile: bool = False) -> Tail:
        tail = self._tails.get(response_id)
        if tail is None:
            tail = self._tails[response_id] = self.kind(is_volatile=is_volatile)
        return tail

    def wake_all(self) -> None:
        for tail in list(self._tails.values()):
            tail.wake()
