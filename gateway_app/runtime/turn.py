"""One turn: drives the agent loop for a claimed response and writes what it says into the log."""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from django.conf import settings

from gateway_app.agent.context import build_items
from gateway_app.agent.loop import run_turn
from gateway_app.agent.types import (
    AgentEvent,
    CallArguments,
    CallFinished,
    CallStarted,
    ModelCall,
    ModelFailed,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from gateway_app.providers import get_provider
from gateway_app.runtime.ledger import Ledger
from gateway_app.tools import TOOLS
from responses_app.errors import StorageUnavailable
from responses_app.eventlog import Fenced, event_store
from responses_app.eventlog.segments import read_whole
from responses_app.events import clean_text, decode_frames
from responses_app.models import Response
from responses_app.output import OutputBuilder
from responses_app.services.admit import Admission
from responses_app.services.claim import Claimed
from responses_app.services.history import Turn, effective_instructions, input_of, turns_before
from responses_app.services.settle import begin, settle
from responses_app.states import IncompleteReason, Status

logger = logging.getLogger(__name__)

RETRY_SECS = 0.5  # between tries to settle while the database is away


class TurnRun:
    def __init__(self, claimed: Claimed) -> None:
        self.row = claimed.row
        self._numbering = claimed.numbering
        self._is_first_attempt = claimed.is_first_attempt
        self._tail = event_store.tails.of(self.row.pk, is_volatile=not self.row.is_stored)
        self._tail.is_fed_here = True
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
        self._task = asyncio.current_task()
        try:
            await self._run()
        except Fenced:
            logger.warning("%s: attempt %d was overtaken.", self.row.pk, self.row.attempt)
        finally:
            self._tail.is_fed_here = self._tail.is_volatile
            self._tail.wake()

    # -- the steps ----------------------------------------------------------------------
    async def _run(self) -> None:
        self._builder = OutputBuilder(self.row.pk, await self._history())
        if self._is_cancelled:
            return await self._settle(Status.CANCELLED)
        if not self._is_first_attempt or (self.row.is_stored is False and self._tail.brief is None):
            return await self._settle(Status.INCOMPLETE, incomplete_reason=IncompleteReason.SERVER_INTERRUPTED)
        try:
            end = await self._generate()
        except asyncio.CancelledError:
            await self._interrupted()
        except ModelFailed as failure:
            await self._settle_failed(failure.code, failure.message)
        except Fenced:
            raise
        except Exception:
            logger.exception("%s: the turn failed.", self.row.pk)
            await self._settle_failed("server_error", "The agent failed unexpectedly.")
        else:
            status = Status.INCOMPLETE if end.incomplete_reason else Status.COMPLETED
            await self._settle(status, usage=end.usage.as_wire(), incomplete_reason=end.incomplete_reason)

    async def _history(self) -> list[dict[str, Any]]:
        if self._tail.is_volatile:
            return list(decode_frames(segment.data for segment in self._tail.after(-1) or []))
        segments = await event_store.read(read_whole, self.row.pk)
        return list(decode_frames(segment.data for segment in segments))

    async def _generate(self) -> TurnFinished:
        if self.row.status == Status.QUEUED:
            await self._begin()
        call = await event_store.read(_model_call, self.row, self._tail.brief)
        ledger = Ledger(self.row, call.tools)
        end: TurnFinished | None = None
        async with aclosing(run_turn(get_provider(settings.HERMES_PROVIDER), call, ledger.run)) as events:
            async for event in events:
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
        await event_store.write(lambda: begin(self.row, segment), lambda _: self._tail.publish(segment))

    async def _record(self, event: AgentEvent) -> None:
        """Into the log, without waiting for the disk unless it falls far behind."""
        builder = self._builder
        match event:
            case TextDelta(text):
                builder.text(clean_text(text))
            case ReasoningDelta(text):
                builder.reasoning(clean_text(text))
            case CallStarted(call_id, name):
                builder.call_started(call_id, clean_text(name))
            case CallArguments(call_id, delta):
                builder.call_arguments(call_id, clean_text(delta))
            case CallFinished(call_id):
                builder.call_finished(call_id)
            case ToolFinished(call_id, output):
                builder.tool_output(call_id, output)
        event_store.append(self._numbering.seal(builder.take()), self._tail, self._refuse)
        if event_store.writer.is_congested:
            await event_store.settled()

    def _refuse(self, error: Exception) -> None:
        if self._refusal is None:
            self._refusal = error
            self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _interrupted(self) -> None:
        """Somebody cancelled this task; the flags say who and why."""
        if isinstance(self._refusal, Fenced):
            raise self._refusal
        task = asyncio.current_task()
        if not (self._is_cancelled or self._refusal) or task is None:
            raise asyncio.CancelledError
        task.uncancel()
        if self._refusal is not None:
            logger.error("%s: an event could not be stored: %s", self.row.pk, self._refusal)
            return await self._settle_failed("server_error", "An event of this response could not be stored.")
        await self._settle(Status.CANCELLED)

    async def _settle_failed(self, code: str, message: str) -> None:
        await self._settle(Status.FAILED, error={"code": code, "message": clean_text(message)})

    async def _settle(self, status: Status, **outcome: Any) -> None:
        """The end of the log; tried until the database takes it, for nobody else will."""
        self._builder.finish(status, **outcome)
        segment = self._numbering.seal(self._builder.take())
        body = self._builder.snapshot.body()
        while True:
            try:
                await event_store.write(lambda: settle(self.row, segment, body), lambda _: self._tail.publish(segment))
            except StorageUnavailable as error:
                logger.error("%s cannot be settled yet: %s", self.row.pk, error)
                await asyncio.sleep(RETRY_SECS)
            else:
                return


def _model_call(row: Response, brief: object) -> ModelCall:
    """Everything the model needs, read when the turn starts: a turn before it may just have ended."""
    turns: list[Turn] = turns_before(row.previous_id)
    if isinstance(brief, Admission):
        request, new_input = brief.request, brief.items
    else:
        request, new_input = row.request, input_of(row.pk)
    return ModelCall(
        model=row.model,
        items=build_items(((turn.input, turn.output) for turn in turns), new_input),
        instructions=effective_instructions(request.get("instructions"), turns),
        tools=tuple(TOOLS.values()),
        max_output_tokens=request.get("max_output_tokens"),
    )
