"""How long a model's server may be silent within its answer: one timer for the whole answer."""

import asyncio
import math
from types import TracebackType

from gateway_app.agent.events import ModelFailed
from gateway_app.providers.openai.sse import cut_off
from gateway_app.providers.openai.transport import ResponseBody

RECHECK_SECS = 0.25  # while this process works on what it has received


class Watchdog:
    """Watches the reads of a body. A limit counts only while one waits: other work is no silence.

    The timer is not moved by each read. When it fires, it looks how long the current read waits.
    """

    def __init__(
        self, body: ResponseBody, read_secs: float, stale_secs: float, stale_at: float
    ) -> None:
        loop = asyncio.get_running_loop()
        self._call_at = loop.call_at
        self._now = loop.time
        self._body = body
        self._read_secs = read_secs  # without a byte, after the first one
        self._stale_secs = stale_secs  # without an event
        self._waits_since = math.inf
        self._has_received = False
        self._stale_at = stale_at  # at first counted from the request on
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "Watchdog":
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._timer is not None
        self._timer.cancel()

    def begin_wait(self) -> None:
        self._waits_since = self._now()

    def end_wait(self) -> None:
        self._waits_since = math.inf
        self._has_received = True

    def note_events(self) -> None:
        """Called when the events of a read are done with."""
        self._stale_at = self._now() + self._stale_secs

    def note_read_while_waiting(self, *, has_events: bool) -> None:
        """Something has arrived and is done with; the wait for more begins."""
        now = self._now()
        self._waits_since = now
        self._has_received = True
        if has_events:
            self._stale_at = now + self._stale_secs

    def _check(self) -> None:
        now = self._now()
        due_at = min(self._silent_at(now), self._stale_at)
        is_waiting = self._waits_since < math.inf
        if is_waiting and due_at <= now:
            self._body.fail(self._failure(now))
            return
        # A read that begins now may last until then.
        next_at = min(max(due_at, now + RECHECK_SECS), now + self._read_secs)
        self._timer = self._call_at(next_at, self._check)

    def _silent_at(self, now: float) -> float:
        if not self._has_received:
            return math.inf
        return min(self._waits_since, now) + self._read_secs

    def _failure(self, now: float) -> ModelFailed:
        if self._silent_at(now) <= self._stale_at:
            return cut_off(f"no data for {self._read_secs:g} s")
        return cut_off(f"no event for {self._stale_secs:g} s")
