"""One turn: drives the agent loop for a claimed response and writes what it says into the log."""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway_app.agent.loop import run_turn
from gateway_app.agent.types import AgentEvent, ModelFailed, TurnFinished
from gateway_app.providers import get_provider
from gateway_app.runtime.briefing import brief_model
from gateway_app.runtime.ledger import Ledger
from gateway_app.runtime.recording import record
from responses_app.eventlog import Fenced, event_store
from responses_app.eventlog.segments import read_whole
from responses_app.events import clean_text, decode_frames
from responses_app.output import OutputBuilder
from responses_app.services.claim import Claimed
from responses_app.services.settle import begin, settle
from responses_app.states import IncompleteReason, Status

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class End:
    """What the terminal event says."""

    status: Status
    usage: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    incomplete_reason: str | None = None


class TurnRun:
    def __init__(self, claimed: Claimed) -> None:
        self.row = claimed.row
        self._numbering = claimed.numbering
        self._is_first_attempt = claimed.is_first_attempt
        self._tail = event_store.tails.of(self.row.pk, is_volatile=not self.row.is_stored)
        self._tail.is_fed_here = True
        if self._tail.is_volatile and self._tail.newest is not None:
            self._numbering.follow(self._tail.newest)
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = self.row.cancel_requested_at is not None
        self._refusal: Exception | None = None
        self._builder: OutputBuilder

    # -- from outside -------------------------------------------------------------------
    def cancel(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._interrupt()

    def lose(self) -> None:
        """A newer attempt has the response: stop, and write nothing more."""
        self._refuse(Fenced(self.row.pk))

    async def run(self) -> None:
        try:
            self._builder = OutputBuilder(self.row.pk, await self._history())
            self._task = asyncio.current_task()  # from here on until it settles, the turn can be interrupted
            end = await self._end()
            self._task = None
            await self._settle(end)
        except Fenced:
            logger.warning("%s: attempt %d was overtaken.", self.row.pk, self.row.attempt)
        finally:
            self._tail.is_fed_here = self._tail.is_volatile
            self._tail.wake()

    # -- the steps ----------------------------------------------------------------------
    async def _end(self) -> End:
        """How this turn ends, whatever happens on the way."""
        try:
            return await self._work()
        except asyncio.CancelledError:
            return self._interruption()
        except ModelFailed as failure:
            logger.warning("%s: %s", self.row.pk, failure.message)
            return _failed(failure.code, failure.message)
        except Fenced:
            raise
        except Exception:
            logger.exception("%s: the turn failed.", self.row.pk)
            return _failed("server_error", "The agent failed unexpectedly.")

    async def _work(self) -> End:
        is_lost = not self.row.is_stored and self._tail.brief is None
        if self._is_cancelled:
            return End(Status.CANCELLED)
        if is_lost or not self._is_first_attempt:
            return End(Status.INCOMPLETE, incomplete_reason=IncompleteReason.SERVER_INTERRUPTED)
        finished = await self._generate()
        status = Status.INCOMPLETE if finished.incomplete_reason else Status.COMPLETED
        return End(status, usage=finished.usage.as_wire(), incomplete_reason=finished.incomplete_reason)

    async def _history(self) -> list[dict[str, Any]]:
        if self._tail.is_volatile:
            return list(decode_frames(segment.data for segment in self._tail.after(-1) or []))
        segments = await event_store.read(read_whole, self.row.pk)
        return list(decode_frames(segment.data for segment in segments))

    async def _generate(self) -> TurnFinished:
        if self.row.status == Status.QUEUED:
            await self._begin()
        call = await event_store.read(brief_model, self.row, self._tail.brief)
        ledger = Ledger(self.row, call.tools)
        end: TurnFinished | None = None
        async with aclosing(run_turn(get_provider(settings.HERMES_PROVIDER), call, ledger.run)) as events:
            async for event in events:
                if self._is_cancelled:  # a provider may have swallowed the cancellation
                    raise asyncio.CancelledError
                if isinstance(event, TurnFinished):
                    end = event
                else:
                    await self._record(event)
        if end is None:
            raise ModelFailed("The agent stopped without an end.")
        return end

    async def _begin(self) -> None:
        self._builder.start()
        segment = self._numbering.seal(self._builder.take())
        await event_store.insist(lambda: begin(self.row, segment), lambda _: self._tail.publish(segment))

    async def _record(self, event: AgentEvent) -> None:
        """Into the log, without waiting for the disk unless it falls far behind."""
        record(self._builder, event)
        events = self._builder.take()
        if events:
            event_store.append(self._numbering.seal(events), self._tail, self._refuse)
        if event_store.writer.is_congested:
            await event_store.insist(lambda: None)

    def _refuse(self, error: Exception) -> None:
        if self._refusal is None:
            self._refusal = error
            self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _interruption(self) -> End:
        """Somebody cancelled this task; the flags say who and why."""
        task = asyncio.current_task()
        if isinstance(self._refusal, Fenced):
            raise self._refusal
        if task is None or not (self._is_cancelled or self._refusal):
            raise asyncio.CancelledError
        task.uncancel()
        if self._refusal is not None:
            logger.error("%s: an event could not be stored: %s", self.row.pk, self._refusal)
            return _failed("server_error", "An event of this response could not be stored.")
        return End(Status.CANCELLED)

    async def _settle(self, end: End) -> None:
        """The end of the log."""
        self._builder.finish(end.status, usage=end.usage, error=end.error, incomplete_reason=end.incomplete_reason)
        segment = self._numbering.seal(self._builder.take())
        body = self._builder.snapshot.body()
        await event_store.insist(lambda: settle(self.row, segment, body), lambda _: self._tail.publish(segment))


def _failed(code: str, message: str) -> End:
    return End(Status.FAILED, error={"code": code, "message": clean_text(message)})
