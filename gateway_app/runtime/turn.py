"""One turn: drives the agent loop for a claimed response and writes what it says into the log."""

import asyncio
import logging
import time
from contextlib import aclosing, suppress
from datetime import datetime
from enum import StrEnum
from functools import partial

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from gateway_app.agent.compaction import run_compaction
from gateway_app.agent.events import (
    Compaction,
    ModelFailed,
    ProtocolDeviation,
    RoundFinished,
    TurnFinished,
    TurnParked,
    Usage,
)
from gateway_app.agent.loop import run_turn
from gateway_app.providers.registry import get_providers
from gateway_app.runtime.ends import End, failed, incomplete
from gateway_app.runtime.mcp import connected
from gateway_app.runtime.recorder import Recorder
from gateway_app.runtime.resumption import EarlierAttempts, attempts_in, read_attempts
from gateway_app.runtime.tool_runner import ToolRunner
from gateway_app.runtime.turn_context import TurnContext, build_turn_context
from responses_app.database import database
from responses_app.eventlog import Fenced
from responses_app.eventlog.segments import stamped
from responses_app.eventlog.store import event_store
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import ATTEMPT_STARTED, CONTEXT_TRUNCATED, Event
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.history.compaction import seal_compaction
from responses_app.services.lifecycle.approvals import park
from responses_app.services.lifecycle.claim import Claimed
from responses_app.services.lifecycle.failed_attempt import is_given_up
from responses_app.services.lifecycle.settle import begin, settle

logger = logging.getLogger(__name__)

RECONNECT_SECS = 10.0


class StopCause(StrEnum):
    """Why a turn is interrupted from outside."""

    CANCELLED = "cancelled"
    UNATTENDED = "unattended"
    SHUTDOWN = "shutdown"


class ContinuedElsewhere(Exception):
    """The turn goes on in another process, from the log."""


class TurnRun:
    def __init__(self, claimed: Claimed) -> None:
        self.row = claimed.row
        self._numbering = claimed.numbering
        self._tail = event_store.tails.of(self.row.pk, is_volatile=not self.row.is_stored)
        self._tail.is_fed_here = True
        if self._tail.is_volatile and self._tail.newest is not None:
            self._numbering.follow(self._tail.newest)
        self._task: asyncio.Task[None] | None = None
        self._stop = StopCause.CANCELLED if self.row.cancel_requested_at is not None else None
        self._began = time.monotonic()
        self._refusal: Exception | None = None
        self._usage = Usage()
        self._quirks: list[str] = []
        self._first_output_at: datetime | None = None
        self._is_ended = False  # the terminal event has its number: nothing is numbered behind it
        self._builder: OutputBuilder

    # -- from outside -------------------------------------------------------------------
    def stop(self, cause: StopCause) -> None:
        if self._stop is None:
            self._stop = cause
            self._interrupt()

    def unattended_secs(self) -> float:
        """How long nobody in this process has read it, of the time it runs."""
        return (
            0.0 if self._tail.readers else time.monotonic() - max(self._began, self._tail.left_at)
        )

    def lose(self) -> None:
        """A newer attempt has the response: stop, and write nothing more."""
        self._refuse(Fenced(self.row.pk))

    async def run(self) -> None:
        try:
            if self._stop is StopCause.SHUTDOWN and self._can_go_on_elsewhere():
                raise ContinuedElsewhere(self.row.pk)
            earlier = await self._earlier_attempts()
            self._builder, self._first_output_at = earlier.builder, earlier.first_output_at
            self._usage, self._quirks = earlier.usage, earlier.quirks
            self._task = (
                asyncio.current_task()
            )  # from here on until it settles, the turn can be interrupted
            end = await self._end(earlier.events)
            self._task = None
            await (self._settle(end) if end is not None else self._park())
        except Fenced:
            self._task = None
            logger.warning("%s: attempt %d was overtaken.", self.row.pk, self.row.attempt)
            await self._end_unstored()
        except ContinuedElsewhere:
            logger.info("%s goes on at the next start.", self.row.pk)
        finally:
            self._tail.is_fed_here = self._tail.is_volatile
            self._tail.wake()

    # -- the steps ----------------------------------------------------------------------
    async def _end(self, history: list[Event]) -> End | None:
        """How this turn ends, whatever happens on the way; None when it only waits for somebody's consent."""
        try:
            return await self._work(history)
        except asyncio.CancelledError:
            return self._interruption()
        except ImproperlyConfigured as error:  # in a profile: those of the settings stop the start
            return failed(self._usage, "server_error", str(error))
        except ModelFailed as failure:
            logger.warning("%s: the model failed (%s).", self.row.pk, failure.code)
            self._usage += failure.usage
            return failed(self._usage, failure.code, failure.message)
        except (Fenced, ContinuedElsewhere):
            raise
        except Exception:
            logger.exception("%s: the turn failed.", self.row.pk)
            return failed(self._usage, "server_error", "The agent failed unexpectedly.")

    async def _work(self, history: list[Event]) -> End | None:
        is_lost = not self.row.is_stored and self._tail.brief is None
        if self._refusal is not None:
            raise self._refusal
        if self._stop is not None:
            return self._stopped(self._stop)
        if is_lost or is_given_up(self.row.crashes, is_stored=self.row.is_stored):
            return incomplete(self._usage, IncompleteReason.SERVER_INTERRUPTED)
        try:
            async with asyncio.timeout(settings.HERMES_TURN_TIMEOUT) as limit:
                finished = await self._generate(history)
        except TimeoutError:
            if not limit.expired():
                raise
            return incomplete(self._usage, IncompleteReason.TIME_LIMIT)
        if finished is None:
            return None
        self._usage = finished.usage
        if finished.incomplete_reason:
            return incomplete(self._usage, finished.incomplete_reason, finished.message)
        return End(Status.COMPLETED, usage=finished.usage.as_wire())

    def _stopped(self, cause: StopCause) -> End:
        if cause is StopCause.CANCELLED:
            return End(Status.CANCELLED, usage=self._usage.as_spent())
        if cause is StopCause.UNATTENDED:
            return incomplete(
                self._usage, IncompleteReason.TIME_LIMIT, "Nobody read this response for too long."
            )
        if self._can_go_on_elsewhere():
            raise ContinuedElsewhere(self.row.pk)
        return incomplete(self._usage, IncompleteReason.SERVER_INTERRUPTED)

    def _can_go_on_elsewhere(self) -> bool:
        return self.row.is_stored and settings.HERMES_RECOVERY == "resume"

    async def _earlier_attempts(self) -> EarlierAttempts:
        if self._tail.is_volatile:
            return attempts_in(self.row.pk, self._tail.whole())
        return await database.read_with_retry(read_attempts, self.row.pk)

    async def _generate(self, history: list[Event]) -> TurnFinished | None:
        if self.row.status == Status.QUEUED:
            await self._begin()
        if self.row.attempt > 1:
            self._resume()
            await connected(
                RECONNECT_SECS
            )  # its calls may be those of servers that are not back yet
        context = await database.read_with_retry(
            build_turn_context, self.row, self._tail.brief, history, self._builder
        )
        if context.kept_items is not None:
            self._note({"type": CONTEXT_TRUNCATED, "kept_items": context.kept_items})
        if (
            context.so_far.is_message_cut and context.call.is_formatted
        ):  # one document is not made of pieces
            return TurnFinished(self._usage, IncompleteReason.SERVER_INTERRUPTED)
        return await self._drive(context)

    async def _drive(self, context: TurnContext) -> TurnFinished | None:
        """The agent loop, up to the end of the turn or to a call that waits for consent."""
        call, so_far = context.call, context.so_far
        tools = {tool.name: tool for tool in call.tools}
        client_names = {tool["name"] for tool in call.client_tools}
        seal = partial(seal_compaction, self.row.owner_id)
        recorder = Recorder(
            self._builder, tools, client_names, self.row.tool_items, seal, so_far.hidden
        )
        workspace = context.agent.workspace(self.row.owner_id)
        tool_runner = ToolRunner(
            self.row, call.tools, workspace, self._note, context.ledger, so_far.told
        )
        providers, retries = get_providers(context.agent.models()), settings.HERMES_STREAM_RETRIES
        if context.recap is None:
            turn = run_turn(providers, call, tool_runner.run, so_far, retries)
        else:
            turn = run_compaction(providers, context.recap, retries, so_far.spent_on_summaries)
        async with aclosing(turn) as events:
            async for event in events:
                if self._stop is not None:  # a provider may have swallowed the cancellation
                    raise asyncio.CancelledError
                if isinstance(event, TurnFinished):
                    return event
                if isinstance(event, TurnParked):
                    return None
                if isinstance(event, RoundFinished | Compaction):
                    self._usage += event.usage
                elif isinstance(event, ProtocolDeviation):
                    self._quirks.append(event.name)
                recorder.record(event)
                if self._first_output_at is None and self._builder.snapshot.item_count:
                    self._first_output_at = timezone.now()
                await self._store()
        raise ModelFailed("The agent stopped without an end.")

    def _resume(self) -> None:
        """What an earlier attempt was saying ends here; what follows is said in items of its own."""
        self._note({"type": ATTEMPT_STARTED, "attempt": self.row.attempt})
        self._builder.close("incomplete")
        self._append()

    async def _begin(self) -> None:
        self._builder.start()
        segment = self._numbering.seal(self._builder.take())
        await database.write_with_retry(
            lambda: begin(self.row, segment), self._tail.publish, self.row.pk
        )

    def _note(self, event: Event) -> None:
        """An internal event, into the log."""
        if not self._is_ended:
            self._builder.add(event)
            self._append()

    async def _store(self) -> None:
        """Into the log, without waiting for the disk unless it falls far behind."""
        self._append()
        if database.writer.is_congested:
            await database.write_with_retry(lambda: None, response_id=self.row.pk)

    def _append(self) -> None:
        events = self._builder.take()
        if events:
            event_store.append(self._numbering.seal(events), self._tail, self._refuse)

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
        assert task is not None
        if isinstance(self._refusal, Fenced):
            task.uncancel()
            raise self._refusal
        if not task.cancelling():  # something inside gave up, and nobody had asked it to
            logger.error("%s: the turn was cancelled from within.", self.row.pk)
            return incomplete(self._usage, IncompleteReason.SERVER_INTERRUPTED)
        if self._stop is None and self._refusal is None:
            raise asyncio.CancelledError  # the loop ends
        task.uncancel()
        if self._refusal is not None:
            cause = type(self._refusal).__name__
            logger.error("%s: an event could not be stored (%s).", self.row.pk, cause)
            return failed(
                self._usage, "server_error", "An event of this response could not be stored."
            )
        assert self._stop is not None
        return self._stopped(self._stop)

    async def _settle(self, end: End) -> None:
        """The end of the log."""
        self._is_ended = True
        self._builder.finish(
            end.status, usage=end.usage, error=end.error, incomplete=end.incomplete
        )
        segment = self._numbering.seal(self._builder.take())
        body = self._builder.snapshot.body()
        try:
            await database.write_with_retry(
                lambda: settle(self.row, segment, body, self._quirks, self._first_output_at),
                partial(event_store.publish_final, self._tail),
                self.row.pk,
            )
        except Fenced:
            if self._tail.is_volatile:  # another process has the row, and only this one has the log
                event_store.publish_final(self._tail, stamped(segment))
            raise

    async def _end_unstored(self) -> None:
        """A row that was lost ends the log of an unstored response: its readers have no other source."""
        if self._tail.is_volatile and not self._is_ended:
            with suppress(Fenced):
                await self._settle(incomplete(self._usage, IncompleteReason.SERVER_INTERRUPTED))

    async def _park(self) -> None:
        """Until somebody consents, nothing is held: no lease and no slot."""
        if not await database.write_with_retry(lambda: park(self.row), response_id=self.row.pk):
            raise Fenced(self.row.pk)
