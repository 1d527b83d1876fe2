"""The log of a running turn: what its recorder builds, numbered, appended and ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.utils import timezone

from gateway_app.agent.events import Usage
from gateway_app.runtime.resumption import (
    EarlierAttempts,
    attempts_in,
    first_attempt,
    read_attempts,
)
from responses_app.database import database
from responses_app.eventlog import AdmittedRequest, Fenced, Numbering, Segment, stamped
from responses_app.eventlog.store import event_store
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import ATTEMPT_STARTED, USAGE_ESTIMATED, Event
from responses_app.protocol.failures import response_error
from responses_app.protocol.response_object import UsageBody
from responses_app.protocol.status import Status
from responses_app.protocol.text_buffer import TextBuffer, clean_text
from responses_app.protocol.text_frames import TextFrames
from responses_app.services.lifecycle.claim import Claimed, next_in_session
from responses_app.services.lifecycle.settle import begin, settle


@dataclass(frozen=True)
class TurnEnd:
    """What the terminal event holds."""

    status: Status
    usage: UsageBody | None = None
    is_usage_estimated: bool = False
    error: dict[str, str] | None = None
    incomplete: dict[str, str] | None = None


def failed(usage: Usage, code: str, message: str) -> TurnEnd:
    error = response_error(code, clean_text(message))
    return _ended(Status.FAILED, usage, error=error)


def incomplete(usage: Usage, reason: str, message: str = "") -> TurnEnd:
    details = {"reason": str(reason)}
    if message:
        details["message"] = clean_text(message)
    return _ended(Status.INCOMPLETE, usage, incomplete=details)


def cancelled(usage: Usage) -> TurnEnd:
    return _ended(Status.CANCELLED, usage)


def completed(usage: Usage) -> TurnEnd:
    return TurnEnd(Status.COMPLETED, usage.as_wire(), usage.is_estimated)


def _ended(
    status: Status,
    usage: Usage,
    error: dict[str, str] | None = None,
    incomplete: dict[str, str] | None = None,
) -> TurnEnd:
    return TurnEnd(status, usage.as_spent(), usage.is_estimated, error, incomplete)


@dataclass(frozen=True)
class _OpenMessage:
    text: TextBuffer
    frames: TextFrames


class TurnLog:
    """Builds the events of one attempt and appends them to the log of its response."""

    builder: OutputBuilder  # from `open` on

    def __init__(self, claimed: Claimed, on_refused: Callable[[Exception], None]) -> None:
        self._row = claimed.row
        self._numbering = claimed.numbering
        self.fresh = claimed.fresh
        self._on_refused = on_refused
        self._first_output_at: datetime | None = None
        self._is_settled = False
        self._following: str | None = None  # as the settling transaction found it
        self.takes_text = True  # False once the turn is to stop
        self._open_message: _OpenMessage | None = None  # as the newest text found it
        self._is_ended = False  # the terminal event has its number: no event is numbered behind it
        self._tail = event_store.tails.of(self._row.pk, is_volatile=not self._row.is_stored)
        self._tail.is_written_here = True
        if self._tail.is_volatile and self._tail.newest is not None:
            self._numbering.follow(self._tail.newest)

    @property
    def admitted_request(self) -> AdmittedRequest | None:
        """The request, where it need not be read or is nowhere else."""
        if self.fresh is not None:
            return self.fresh.request
        return self._tail.unstored_request

    def unread_secs(self, since: float) -> float:
        """How long no reader of this process has followed the log, counted from ``since``."""
        if self._tail.readers:
            return 0.0
        return time.monotonic() - max(since, self._tail.left_at)

    # -- the beginning ------------------------------------------------------------------
    async def open(self) -> EarlierAttempts:
        """Build on what earlier attempts, and the admission, have left in the log."""
        if self._tail.is_volatile:
            earlier = attempts_in(self._row.pk, self._tail.whole())
        elif self.fresh is not None:
            earlier = first_attempt(self._row.pk, self.fresh.opening)
        else:
            earlier = await database.read_with_retry(read_attempts, self._row.pk)
        self.builder = earlier.builder
        self._first_output_at = earlier.first_output_at
        return earlier

    async def begin(self) -> None:
        """A queued response is in progress now."""
        self.builder.start()
        segment = self._numbering.seal(self.builder.take())
        await database.write_with_retry(
            partial(begin, self._row, segment), self._tail.publish, self._row.pk
        )

    def resume(self) -> None:
        """Close what an earlier attempt left open; what follows is in items of its own."""
        self.note({"type": ATTEMPT_STARTED, "attempt": self._row.attempt})
        self.builder.close("incomplete")
        self.append()

    # -- while it runs ------------------------------------------------------------------
    def note(self, event: Event) -> None:
        """Append an internal event."""
        if not self._is_ended:
            self.builder.add(event)
            self.append()

    def append(self, *, may_gather: bool = False) -> None:
        """Append what was built, without waiting for the disk."""
        if self._first_output_at is None and self.builder.snapshot.item_count:
            self._first_output_at = timezone.now()
        events = self.builder.take()
        if events:
            self._open_message = None  # one of them may have closed it
            segment = self._numbering.seal(events)
            event_store.append(segment, self._tail, self._on_refused, may_gather=may_gather)

    # -- the short way of text (agent/text_listener.py) -----------------------------------
    @property
    def open_text(self) -> TextBuffer | None:
        """The text of the open message."""
        if self._open_message is None:
            self._open_message = self._find_open_message()
        if self._open_message is None:
            return None
        return self._open_message.text

    async def write(self, texts: list[str]) -> bool:
        """Extend the text of the open message, and append its deltas."""
        if not self._write(texts):
            return False
        if database.writer.is_congested:
            await self.wait_for_disk()
        return True

    def write_now(self, texts: list[str]) -> bool:
        return not database.writer.is_congested and self._write(texts)

    def _write(self, texts: list[str]) -> bool:
        message = self._open_message or self._find_open_message()
        if message is None or not self.takes_text:
            return False
        for piece in texts:
            message.text.add(piece)
        segment = self._numbering.seal_text(message.frames, texts)
        event_store.append(segment, self._tail, self._on_refused, may_gather=True)
        return True

    def _find_open_message(self) -> _OpenMessage | None:
        index = self.builder.last_open("output_text")
        if index is None:
            return None
        snapshot = self.builder.snapshot
        frames = TextFrames(snapshot.item(index)["id"], index)
        return _OpenMessage(snapshot.buffer(index, "text"), frames)

    async def wait_for_disk(self) -> None:
        await database.write_with_retry(_do_nothing, response_id=self._row.pk)

    # -- the end ------------------------------------------------------------------------
    async def settle(self, end: TurnEnd, deviations: list[str]) -> None:
        """Store the terminal event and the result together."""
        self._is_ended = True
        if end.is_usage_estimated:
            self.builder.add({"type": USAGE_ESTIMATED})
        self.builder.finish(end.status, usage=end.usage, error=end.error, incomplete=end.incomplete)
        segment = self._numbering.seal(self.builder.take())
        body = self.builder.snapshot.body()
        states = self.builder.snapshot.states.stored()
        first_output_at = self._first_output_at
        known_input = None
        if self.fresh is not None:
            known_input = self.fresh.request.items

        def store() -> tuple[Segment, str | None]:
            settled = settle(
                self._row, segment, body, deviations, first_output_at, known_input, states
            )
            following: str | None = None
            if settled.may_have_next(self._row):
                following = next_in_session(self._row.session_id)
            return settled.segment, following

        # A cycle of objects may hold this one for long: it has none of the text any more.
        self.builder = OutputBuilder(self._row.pk, ())
        self._numbering = Numbering(self._row.pk, self._row.attempt)
        self._open_message = None
        try:
            await database.write_with_retry(store, self._publish_end, self._row.pk)
        except Fenced:
            if self._tail.is_volatile:  # another process has the row, and only this one has the log
                event_store.publish_final(self._tail, stamped(segment))
            raise

    def _publish_end(self, stored: tuple[Segment, str | None]) -> None:
        segment, self._following = stored
        self._is_settled = True
        event_store.publish_final(self._tail, segment)

    async def next_turn(self) -> str | None:
        """The turn of its session that may start now that this one has ended or waits."""
        if self._is_settled:
            return self._following
        return await database.read_with_retry(next_in_session, self._row.session_id)

    @property
    def needs_end(self) -> bool:
        """Only this process has the log of an unstored response, and can end it for its readers."""
        return self._tail.is_volatile and not self._is_ended

    def close(self) -> None:
        """From here on, readers poll the log: another process may append to it."""
        self._tail.is_written_here = self._tail.is_volatile
        self._tail.wake()


def _do_nothing() -> None:
    """The writer runs it behind all that was appended before."""
