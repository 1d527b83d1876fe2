"""Snapshots of running responses: folds of the stored log, kept between two reads.

Clients poll a background response. Folding the whole log for every poll would make each poll cost
more than the one before, so a read takes in only the events since the last one.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from django.db import connection

from responses_app.eventlog.reading import (
    READ_SEGMENTS,
    LogErased,
    next_limit,
    read_finals,
    read_last,
    read_on,
)
from responses_app.eventlog.segments import Segment
from responses_app.protocol.events import Event
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.snapshot import Snapshot
from responses_app.protocol.sse import decode_frame, decode_last_frame, split_frames

KEPT_FOLDS = 512
KEPT_BYTES = 32 * 1024 * 1024  # of all folds, as JSON
IDLE_SECS = 60.0  # a client that polls reads again sooner


class LogFold(Protocol):
    def add(self, segment: Segment) -> int:
        """Take in the next segment of the log; returns how many bytes of it stay."""


F = TypeVar("F", bound=LogFold)
T = TypeVar("T")


class _Entry(Generic[F]):
    def __init__(self, fold: F) -> None:
        self.lock = threading.Lock()
        self.used_at = 0.0
        self.reset(fold)

    def reset(self, fold: F) -> None:
        self.fold = fold
        self.position = -1
        self.size = 0

    def advance(self, response_id: str) -> bool:
        """Up to the newest committed event; True when the log has ended."""
        # Most reads find few segments; a small limit also makes PostgreSQL use the index.
        limit = READ_SEGMENTS
        while True:
            found = read_on(response_id, self.position, limit)
            for segment in found or ():
                self.size += self.fold.add(segment)
                self.position = segment.last_position
                if segment.is_final:
                    return True
            if found is None or not found.has_more:
                return found is None
            limit = next_limit(limit, found)


class FoldCache(Generic[F]):
    """The folds of logs that were read lately; safe between threads."""

    def __init__(
        self, make: Callable[[], F], max_count: int = KEPT_FOLDS, max_bytes: int = KEPT_BYTES
    ) -> None:
        self._make = make
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry[F]] = OrderedDict()
        self._lock = threading.Lock()
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._entries

    def read(self, response_id: str, render: Callable[[F], T]) -> T | None:
        """What ``render`` returns for the fold of the stored log; None when there is no log.

        ``render`` must not return an object that a later event changes.
        """
        entry = self._entry(response_id)
        with entry.lock:
            try:
                has_ended = entry.advance(response_id)
            except Exception as error:
                # Half of a segment may be folded, and other threads wait for this entry.
                entry.reset(self._make())
                self.forget(response_id)
                if isinstance(error, LogErased):
                    return None
                raise
            rendered = render(entry.fold)
        if has_ended:
            self.forget(response_id)
        self._trim()
        return rendered

    def forget(self, response_id: str) -> None:
        with self._lock:
            self._entries.pop(response_id, None)

    def _entry(self, response_id: str) -> _Entry[F]:
        if connection.in_atomic_block:
            # A transaction sees events that may never be committed: this fold is not kept.
            return _Entry(self._make())
        with self._lock:
            entry = self._entries.get(response_id)
            if entry is None:
                entry = self._entries[response_id] = _Entry(self._make())
            self._entries.move_to_end(response_id)
            entry.used_at = time.monotonic()
            return entry

    def _trim(self) -> None:
        """Remove the least recently used, until the rest is small enough."""
        with self._lock:
            size = sum(entry.size for entry in self._entries.values())
            idle_since = time.monotonic() - IDLE_SECS
            while self._entries:
                oldest = next(iter(self._entries.values()))
                is_full = len(self._entries) > self._max_count or size > self._max_bytes
                if not is_full and oldest.used_at > idle_since:
                    return
                size -= oldest.size
                self._entries.popitem(last=False)


_caches: WeakSet[FoldCache[Any]] = WeakSet()


def forget(response_id: str) -> None:
    """The log has ended or was erased."""
    for cache in list(_caches):
        cache.forget(response_id)


class BodyFold:
    """The response object."""

    def __init__(self) -> None:
        self._snapshot = Snapshot()

    def add(self, segment: Segment) -> int:
        size = 0
        for frame in split_frames(segment.data):
            event = decode_frame(frame)
            self.apply(event)
            size += _kept_bytes(event, frame)
        return size

    def apply(self, event: Event) -> None:
        self._snapshot.apply(event)

    def body(self) -> ResponseBody:
        return self._snapshot.detached_body()


def _kept_bytes(event: Event, frame: bytes) -> int:
    """Of a delta only its text stays."""
    delta = event.get("delta")
    if delta is None or event.get("logprobs"):
        return len(frame)
    return len(delta)


_bodies: FoldCache[BodyFold] = FoldCache(BodyFold)


def current_body(response_id: str) -> ResponseBody | None:
    """The response object after the stored events; None when there are none."""
    if response_id not in _bodies:
        last = read_last(response_id)
        if last is None:
            return None
        if last.is_final:
            return final_body(last)
    return _bodies.read(response_id, BodyFold.body)


def final_body(final: Segment) -> ResponseBody:
    """A terminal event carries the whole response: nothing before it need be folded."""
    body: ResponseBody = decode_last_frame(final.data)["response"]
    return body


def final_bodies(response_ids: Sequence[str]) -> dict[str, ResponseBody]:
    """The bodies of many ended responses, by their ids."""
    bodies: dict[str, ResponseBody] = {}
    for final in read_finals(response_ids):
        bodies[final.response_id] = final_body(final)
    return bodies
