"""Runs tools through the ledger: the intent is stored before a call, its result right after it."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from django.conf import settings

from gateway_app.agent.arguments import read_arguments
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import (
    Consent,
    ToolCall,
    ToolContext,
    ToolOutput,
    ToolResult,
)
from gateway_app.runtime import consent
from gateway_app.runtime.notes import notes_of
from gateway_app.runtime.tool_progress import ToolProgress
from gateway_app.runtime.visible_results import ResultCap
from responses_app.database import database
from responses_app.metrics import tool_seconds
from responses_app.models import (
    UNKNOWN_TOOL,
    Approver,
    Decision,
    Response,
    ToolEvent,
    ToolStatus,
)
from responses_app.protocol.closing import INTERRUPTED
from responses_app.protocol.events import (
    APPROVAL_REQUESTED,
    APPROVAL_RESOLVED,
    TOOL_FINISHED,
    TOOL_STARTED,
    Event,
)
from responses_app.protocol.text_buffer import clean_text
from responses_app.services.lifecycle.approval_requests import take_over
from responses_app.services.lifecycle.tool_ledger import (
    Intent,
    end_call,
    is_granted,
    ledger_call_id,
    record_intent,
    request_approval,
    start_call,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Events that each call has at most once, over all attempts.
NOTED_ONCE = frozenset((APPROVAL_REQUESTED, APPROVAL_RESOLVED, TOOL_STARTED, TOOL_FINISHED))


class ToolRunner:
    """The calls of one attempt.

    ``known`` are the calls that earlier attempts stored in the ledger, ``noted`` the events that
    they appended. A process may die between the two: the next attempt appends the missing event.
    """

    def __init__(
        self,
        row: Response,
        model_call: ModelCall,
        workspace: Callable[[str], Awaitable[Path]],
        note: Callable[[Event], None],
        known: dict[str, ToolEvent],
        noted: Collection[tuple[str, str]],
        approved: Mapping[str, int],
    ) -> None:
        self._row = row
        self._tools = {tool.name: tool for tool in model_call.tools}
        self._cap = ResultCap(model_call.budget.window, self._tools)
        self._workspace = workspace
        self._note = note
        self._known = known
        self._noted = set(noted)  # types of NOTED_ONCE, with call ids
        self._approved = approved  # by the client, in another turn: see requested_calls
        self._model_call = model_call

    async def run(self, call: ToolCall) -> ToolResult | None:
        """The output of a call; a failure is an output too. None while it waits for approval."""
        known = self._known.get(ledger_call_id(self._row, call.call_id))
        if known is None:
            return await self._first_time(call)
        if self._is_other(known, call):
            return ToolResult(
                "Error: another call of this turn has the same id; this one was not run.",
                is_error=True,
            )
        if known.has_started:
            self._note_call(TOOL_STARTED, call)
        if known.is_over:
            status = ToolStatus(known.status)
            return self._over(call, status, known.output, known.secs, known.image_urls)
        if known.status == ToolStatus.AWAITING_APPROVAL:
            return await self._waited(call, known)
        tool = self._tools.get(call.name)
        if tool is None or not tool.is_replay_safe:
            return await self._end(call, ToolStatus.INTERRUPTED, INTERRUPTED)
        return await self._start(call)

    async def ask(self, call: ToolCall) -> Consent:
        """Ask for the approval that a call needs; all calls of a round ask before one runs."""
        call_id = ledger_call_id(self._row, call.call_id)
        known = self._known.get(call_id)
        if known is None:
            if call.call_id in self._approved:
                return Consent.GIVEN
            intent = await self._intent(call)
            if not intent.approval_reason or intent.denial:
                return Consent.GIVEN
            if await database.read_with_retry(is_granted, self._row, intent):
                return Consent.GIVEN
            known = await self._write(partial(request_approval, self._row, intent))
            self._known[call_id] = known
        if known.status != ToolStatus.AWAITING_APPROVAL or self._is_other(known, call):
            return Consent.GIVEN
        if consent.asks_in_output(self._row, known.approver):
            return Consent.REQUESTED
        assert known.expires_at is not None
        self._note_request(call, known, known.expires_at)
        overdue = ToolEvent.objects.overdue().filter(pk=known.pk)
        is_overdue = await database.read_with_retry(overdue.exists)
        if known.decision or is_overdue:
            return Consent.GIVEN
        return Consent.AWAITED

    # -- the ways of a call -------------------------------------------------------------
    async def _first_time(self, call: ToolCall) -> ToolResult | None:
        intent = await self._intent(call)
        asked_id = self._approved.get(call.call_id)
        if asked_id is not None:
            if not await self._write(partial(take_over, self._row, intent, asked_id)):
                return ToolResult(consent.USED_BEFORE, is_error=True)
            return await self._run(call)
        recorded = await self._write(partial(record_intent, self._row, intent))
        if recorded.status is ToolStatus.DENIED:
            return self._over(call, recorded.status, intent.denial, 0.0)
        if recorded.expires_at is not None:  # a grant was withdrawn since the call asked
            self._note_request(call, intent, recorded.expires_at)
            return None
        return await self._run(call)

    async def _intent(self, call: ToolCall) -> Intent:
        tool = self._tools.get(call.name)
        approver = Approver.OPERATOR
        if tool is not None:
            approver = Approver(tool.approver)
        return Intent(
            call.call_id,
            self._known_name(call),
            call.arguments,
            approval_reason=await self._approval_reason(call),
            approval_time=timedelta(seconds=settings.HERMES_APPROVAL_TIMEOUT),
            approver=approver,
            can_keep_consent=tool is None or tool.can_keep_consent,
            denial=consent.denial_of(self._row, approver),
        )

    async def _waited(self, call: ToolCall, known: ToolEvent) -> ToolResult:
        """The call has asked, and was decided or is overdue."""
        decision = known.decision or "expired"
        self._note_call(APPROVAL_RESOLVED, call, decision=decision, by=known.decided_by)
        if decision == Decision.DENY:
            return await self._end(call, ToolStatus.DENIED, consent.DENIED)
        if decision == "expired":
            return await self._end(call, ToolStatus.DENIED, consent.EXPIRED)
        return await self._start(call)

    async def _start(self, call: ToolCall) -> ToolResult:
        """A call that has its row already."""
        await self._write(partial(start_call, self._row, call.call_id))
        return await self._run(call)

    async def _run(self, call: ToolCall) -> ToolResult:
        began = time.monotonic()
        self._note_call(TOOL_STARTED, call)
        progress = ToolProgress(call.call_id, self._note)
        try:
            status, output = await self._execute(call, progress)
        finally:
            progress.close()
        secs = time.monotonic() - began
        tool_seconds.labels(self._known_name(call), str(status)).observe(secs)
        return await self._end(call, status, output.text, secs, output.images)

    async def _end(
        self,
        call: ToolCall,
        status: ToolStatus,
        output: str,
        secs: float = 0.0,
        images: tuple[str, ...] = (),
    ) -> ToolResult:
        shown = self._cap.shown_images(call, images)
        stored_images = json.dumps(shown) if shown else ""
        await self._write(partial(end_call, self._row, call.call_id, status, output, stored_images))
        return self._over(call, status, output, secs, images)

    def _over(
        self,
        call: ToolCall,
        status: ToolStatus,
        output: str,
        secs: float,
        images: tuple[str, ...] = (),
    ) -> ToolResult:
        self._note_call(TOOL_FINISHED, call, status=str(status), duration_ms=round(1000 * secs))
        return self._cap.result(call, output, images, is_error=status is not ToolStatus.COMPLETED)

    async def _write(self, step: Callable[[], T]) -> T:
        """Written behind the events that led to it, so that the log explains every row."""
        return await database.write_with_retry(step, response_id=self._row.pk)

    def _note_request(
        self, call: ToolCall, asked: Intent | ToolEvent, expires_at: datetime
    ) -> None:
        fields = consent.request_fields(self._row, asked, expires_at)
        self._note_call(APPROVAL_REQUESTED, call, **fields)

    def _note_call(self, kind: str, call: ToolCall, **fields: Any) -> None:
        if (kind, call.call_id) not in self._noted:
            self._noted.add((kind, call.call_id))
            event = {"type": kind, "call_id": call.call_id, "name": call.name} | fields
            self._note(cast(Event, event))

    # -- the tool -----------------------------------------------------------------------
    def _known_name(self, call: ToolCall) -> str:
        """A name that a model made up is content, and would be a time series of its own."""
        if call.name in self._tools:
            return call.name
        return UNKNOWN_TOOL

    def _is_other(self, known: ToolEvent, call: ToolCall) -> bool:
        """Has another call of the turn this id? A tool may come or go, as an MCP server does."""
        if not self._row.is_stored:
            return False  # the ledger has no content
        is_same_tool = known.name in (call.name, UNKNOWN_TOOL)
        return not is_same_tool or known.arguments != call.arguments

    async def _approval_reason(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None or tool.asks_approval is None:
            return ""
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            return await asyncio.to_thread(tool.asks_approval, arguments)
        except ValueError:
            return ""  # the call fails when it runs, and the model gets the reason

    def _unknown(self, name: str) -> str:
        offered = ", ".join(self._model_call.offered_names()) or "none"
        return f"Error: there is no tool named {name!r}. The tools are: {offered}."

    async def _execute(
        self, call: ToolCall, progress: ToolProgress
    ) -> tuple[ToolStatus, ToolOutput]:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolStatus.FAILED, ToolOutput(self._unknown(call.name))
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            room = self._cap.shared_by(call).tokens
            workspace = await self._workspace(call.name)
            context = ToolContext(workspace, progress.add, notes_of(self._row), room)
            async with asyncio.timeout(tool.time_limit_secs) as limit:
                output = await tool.run(arguments, context)
            if isinstance(output, ToolOutput):
                return ToolStatus.COMPLETED, replace(output, text=clean_text(output.text))
            return ToolStatus.COMPLETED, ToolOutput(clean_text(str(output)))
        except Exception as error:  # the model gets the error, and the turn goes on
            if isinstance(error, TimeoutError) and limit.expired():
                message = f"Error: {call.name} did not end within {tool.time_limit_secs:g} s."
                return ToolStatus.FAILED, ToolOutput(message)
            cause = type(error).__name__
            logger.info("%s: the tool %s failed (%s).", self._row.pk, call.name, cause)
            return ToolStatus.FAILED, ToolOutput(clean_text(f"Error: {error or cause}"))
