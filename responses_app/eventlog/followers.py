"""Readers that wait for events: when they are woken, and which events need no task of theirs."""

import asyncio
import logging
import time
from collections.abc import Callable

from responses_app.eventlog.segments import Segment

logger = logging.getLogger(__name__)

# Sends a segment and returns True, or does nothing: then the task of the reader sends it.
Takes = Callable[[Segment], bool]


class Alarm:
    """Wakes a reader for which nothing came for some time; one timer for all its waits.

    The timer is not moved by each event. When it fires, it looks how long nothing has come.
    """

    def __init__(self, idle_secs: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_secs = idle_secs
        self._since = time.monotonic()
        self.has_rung = False  # since the last reset
        self._waiter: asyncio.Future[None] | None = None
        self._timer = self._loop.call_later(idle_secs, self._ring)

    def __enter__(self) -> "Alarm":
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    def reset(self) -> None:
        self._since = time.monotonic()
        self.has_rung = False

    def new_waiter(self) -> "asyncio.Future[None]":
        self._waiter = self._loop.create_future()
        return self._waiter

    def _ring(self) -> None:
        pause = self._since + self._idle_secs - time.monotonic()
        if pause <= 0:
            pause = self._idle_secs
            self.has_rung = True
            if self._waiter is not None:
                release(self._waiter)
        self._timer = self._loop.call_later(pause, self._ring)


class Follower:
    """Passes events to the connection of a reader as they are published, while its task waits.

    Waking the task, with the generators of its layers, costs more than sending a word.
    """

    def __init__(self, takes: Takes | None, alarm: Alarm) -> None:
        self._takes = takes
        self.alarm = alarm
        self.position = -1  # of the newest event that the reader has

    def takes(self, segment: Segment) -> bool:
        if self._takes is None or segment.is_final:
            return False
        if segment.first_position != self.position + 1:
            return False
        try:
            is_taken = self._takes(segment)
        except Exception:  # the other readers get theirs
            logger.exception("An event could not be passed to its reader.")
            return False
        if is_taken:
            self.position = segment.last_position
            self.alarm.reset()
        return is_taken


def release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
