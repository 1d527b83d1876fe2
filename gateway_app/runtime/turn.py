"""One turn: drives the agent loop for a claimed response and writes its output into the log."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.events import (
    ANSWER_EVENTS,
    AnswerStarted,
    Compaction,
    ModelFailed,
    ProtocolDeviation,
    RoundFinished,
    TurnFinished,
    TurnParked,
    UpstreamAbandoned,
    UpstreamPosition,
    Usage,
)
from gateway_app.runtime.agent_run import cancel_upstream, make_recorder, start_agent
from gateway_app.runtime.mcp import wait_until_connected
from gateway_app.runtime.missing_servers import deviation, wait_for_servers
from gateway_app.runtime.open_round import OpenRound
from gateway_app.runtime.resumption import EarlierAttempts
from gateway_app.runtime.stop_causes import ContinuedElsewhere, StopCause
from gateway_app.runtime.turn_context import TurnContext, read_turn_context
from gateway_app.runtime.turn_log import (
    TurnEnd,
    TurnLog,
    cancelled,
    completed,
    failed,
    incomplete,
)
from gateway_app.runtime.windows import windows
from responses_app.database import database
from responses_app.eventlog import Fenced
from responses_app.protocol.events import CONTEXT_TRUNCATED, PROTOCOL_DEVIATION
from responses_app.protocol.failures import with_retry_after
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.lifecycle.approvals import park
from responses_app.services.lifecycle.claim import Claimed
from responses_app.services.lifecycle.failed_attempt import is_given_up

logger = logging.getLogger(__name__)

RECONNECT_SECS = 10.0  # for MCP servers whose calls a resumed turn may have to run


class TurnRun:
    """One attempt at a response, from its claim to its end or to a wait for an approval."""

    def __init__(self, claimed: Claimed) -> None:
        self.row = claimed.row
        self._log = TurnLog(claimed, self._refuse)
        self.next_turn = self._log.next_turn
        self._began = time.monotonic()
        self._task: asyncio.Task[None] | None = None  # set while the turn can be interrupted
        self._stop: StopCause | None = None
        if self.row.cancel_requested_at is not None:
            self._stop = StopCause.CANCELLED
        self._refusal: Exception | None = None
        self._usage = Usage()  # of finished rounds, and of earlier attempts
        self._open_round = OpenRound()
        self._deviations: list[str] = []
        self._waits_for: tuple[str, ...] = ()  # ids of calls that need a decision
        self._upstream: UpstreamPosition | None = None  # of an answer that runs there by itself

    # -- from outside -------------------------------------------------------------------
    def stop(self, cause: StopCause) -> None:
        if self._stop is None:
            self._stop = cause
            self._interrupt()

    def unattended_secs(self) -> float:
        return self._log.unread_secs(self._began)

    def lose(self) -> None:
        """A newer attempt has the response: stop, and write nothing more."""
        self._refuse(Fenced(self.row.pk))

    def _refuse(self, error: Exception) -> None:
        """An event was not stored."""
        if self._refusal is None:
            self._refusal = error
            self._interrupt()

    def _interrupt(self) -> None:
        self._log.takes_text = False
        if self._task is not None:
            self._task.cancel()

    # -- the attempt --------------------------------------------------------------------
    async def run(self) -> None:
        try:
            await self._run_to_end()
        except Fenced:
            self._task = None
            logger.warning("%s: attempt %d was overtaken.", self.row.pk, self.row.attempt)
            if self._log.needs_end:
                end = incomplete(self._spent(), IncompleteReason.SERVER_INTERRUPTED)
                with suppress(Fenced):
                    await self._log.settle(end, self._deviations)
        except ContinuedElsewhere:
            logger.info("%s goes on at the next start.", self.row.pk)
        finally:
            self._log.close()

    async def _run_to_end(self) -> None:
        if self._stop is StopCause.SHUTDOWN and self._can_go_on_elsewhere():
            raise ContinuedElsewhere(self.row.pk)
        earlier = await self._log.open()
        self._usage = earlier.usage
        self._open_round = earlier.open_round
        self._deviations = earlier.deviations
        self._upstream = earlier.upstream
        self._task = asyncio.current_task()
        end = await self._find_end(earlier)
        self._task = None
        if end is not None:
            await self._log.settle(end, self._deviations)
            if self._upstream is not None:
                await cancel_upstream(self.row, self._upstream)
        else:
            await self._park()

    async def _park(self) -> None:
        step = partial(park, self.row, self._waits_for)
        if not await database.write_with_retry(step, response_id=self.row.pk):
            raise Fenced(self.row.pk)

    async def _find_end(self, earlier: EarlierAttempts) -> TurnEnd | None:
        """How this turn ends, whatever happens on the way; None when a call waits for approval."""
        try:
            return await self._work(earlier)
        except asyncio.CancelledError:
            return self._interrupted()
        except ImproperlyConfigured as error:  # in a profile: those of the settings stop the start
            return failed(self._spent(), "server_error", str(error))
        except ModelFailed as failure:
            logger.warning("%s: the model failed (%s).", self.row.pk, failure.code)
            self._usage += failure.usage  # with that of the open round
            message = with_retry_after(failure.message, failure.retry_after)
            return failed(self._usage, failure.code, message)
        except (Fenced, ContinuedElsewhere):
            raise
        except Exception:
            logger.exception("%s: the turn failed.", self.row.pk)
            return failed(self._spent(), "server_error", "The agent failed unexpectedly.")

    async def _work(self, earlier: EarlierAttempts) -> TurnEnd | None:
        is_request_lost = not self.row.is_stored and self._log.admitted_request is None
        if self._refusal is not None:
            raise self._refusal
        if self._stop is not None:
            return self._stopped(self._stop)
        if is_request_lost or is_given_up(self.row.crashes, is_stored=self.row.is_stored):
            return incomplete(self._usage, IncompleteReason.SERVER_INTERRUPTED)
        try:
            async with asyncio.timeout(settings.HERMES_TURN_TIMEOUT) as limit:
                finished = await self._generate(earlier)
        except TimeoutError:
            if not limit.expired():
                raise
            return incomplete(self._spent(), IncompleteReason.TIME_LIMIT)
        if finished is None:
            return None
        self._usage = finished.usage
        if finished.incomplete_reason:
            return incomplete(self._usage, finished.incomplete_reason, finished.message)
        return completed(self._usage)

    async def _generate(self, earlier: EarlierAttempts) -> TurnFinished | None:
        if self.row.status == Status.QUEUED:
            await self._log.begin()
        if self.row.attempt > 1:
            self._log.resume()
            await wait_until_connected(RECONNECT_SECS)
        missing = await wait_for_servers(self.row, self._log.admitted_request)
        context = await self._read_context(earlier, missing)
        is_unknown = context.call.budget.window == 0
        if is_unknown and await windows.ask_first(context.agent.models()[0]):
            context = await self._read_context(earlier, missing)
        for name in (*map(deviation, missing), *context.deviations):
            if name not in self._deviations:
                self._log.note({"type": PROTOCOL_DEVIATION, "name": name})
                self._deviations.append(name)
        if context.kept_items is not None:
            self._log.note({"type": CONTEXT_TRUNCATED, "kept_items": context.kept_items})
        if context.progress.is_message_cut and context.call.is_formatted:
            # Two pieces do not make one JSON document.
            return TurnFinished(self._usage, IncompleteReason.SERVER_INTERRUPTED)
        return await self._drive(context)

    async def _read_context(
        self, earlier: EarlierAttempts, missing_servers: Sequence[str]
    ) -> TurnContext:
        admitted = self._log.admitted_request
        fresh = self._log.fresh
        return await read_turn_context(self.row, admitted, fresh, earlier, missing_servers)

    async def _drive(self, context: TurnContext) -> TurnFinished | None:
        """The agent loop, up to the end of the turn or to a call that waits for approval."""
        recorder = make_recorder(self.row, context, self._log)
        async with aclosing(start_agent(self.row, context, self._log)) as events:
            async for event in events:
                if self._stop is not None:  # a provider may have swallowed the cancellation
                    raise asyncio.CancelledError
                if isinstance(event, TurnFinished):
                    return event
                if isinstance(event, TurnParked):
                    self._waits_for = event.call_ids
                    return None
                note = _NOTES.get(type(event))
                if note is not None:
                    note(self, event)
                recorder.record(event)
                self._log.append(may_gather=type(event) in ANSWER_EVENTS)
                if database.writer.is_congested:
                    await self._log.wait_for_disk()
        raise ModelFailed("The agent stopped without an end.")

    def _note_deviation(self, event: ProtocolDeviation) -> None:
        self._deviations.append(event.name)

    def _begin_answer(self, event: AnswerStarted) -> None:
        self._open_round.begin_answer(event.input_tokens)

    def _note_position(self, event: UpstreamPosition) -> None:
        self._upstream = event

    def _end_round(self, event: RoundFinished | Compaction) -> None:
        if isinstance(event, Compaction) and event.context is None:  # it has only begun
            return
        self._upstream = None
        self._usage += event.usage
        self._open_round.end(self._log.builder.snapshot.item_count)

    def _abandon_upstream(self, event: UpstreamAbandoned) -> None:
        """Its answer is not picked up, so its upstream will not count it."""
        self._upstream = None
        self._usage = self._spent()
        self._open_round.end(self._log.builder.snapshot.item_count)

    def _spent(self) -> Usage:
        """Up to now, wherever the turn is interrupted."""
        return self._usage + self._open_round.usage(self._log.builder.output)

    # -- interruptions ------------------------------------------------------------------
    def _interrupted(self) -> TurnEnd:
        """This task was cancelled; the flags show why."""
        task = asyncio.current_task()
        assert task is not None
        if isinstance(self._refusal, Fenced):
            task.uncancel()
            raise self._refusal
        if not task.cancelling():
            logger.error("%s: the turn was cancelled from within.", self.row.pk)
            return incomplete(self._spent(), IncompleteReason.SERVER_INTERRUPTED)
        if self._stop is None and self._refusal is None:
            raise asyncio.CancelledError  # the event loop ends
        task.uncancel()
        if self._refusal is not None:
            cause = type(self._refusal).__name__
            logger.error("%s: an event could not be stored (%s).", self.row.pk, cause)
            message = "An event of this response could not be stored."
            return failed(self._spent(), "server_error", message)
        assert self._stop is not None
        return self._stopped(self._stop)

    def _stopped(self, cause: StopCause) -> TurnEnd:
        if cause is StopCause.CANCELLED:
            return cancelled(self._spent())
        if cause is StopCause.UNATTENDED:
            message = "No client read this response for too long."
            return incomplete(self._spent(), IncompleteReason.TIME_LIMIT, message)
        if self._can_go_on_elsewhere():
            raise ContinuedElsewhere(self.row.pk)
        return incomplete(self._spent(), IncompleteReason.SERVER_INTERRUPTED)

    def _can_go_on_elsewhere(self) -> bool:
        return self.row.is_stored and settings.HERMES_RECOVERY == "resume"


# The events that have more than what is recorded.
_NOTES: dict[type, Callable[[TurnRun, Any], None]] = {
    RoundFinished: TurnRun._end_round,
    Compaction: TurnRun._end_round,
    ProtocolDeviation: TurnRun._note_deviation,
    AnswerStarted: TurnRun._begin_answer,
    UpstreamPosition: TurnRun._note_position,
    UpstreamAbandoned: TurnRun._abandon_upstream,
}
