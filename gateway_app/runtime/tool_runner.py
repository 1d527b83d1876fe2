"""Runs tools through the ledger: the intent is stored before a call, its result right after it."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from django.conf import settings

from gateway_app.agent.arguments import read_arguments
from gateway_app.agent.tools import (
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
)
from gateway_app.runtime.visible_results import ResultCap
from responses_app.database import database
from responses_app.http.principals import may_client_decide
from responses_app.metrics import tool_seconds
from responses_app.models import (
    UNKNOWN_TOOL,
    Approver,
    Decision,
    Response,
    ToolEvent,
    ToolStatus,
    decisions_for,
)
from responses_app.protocol.closing import INTERRUPTED
from responses_app.protocol.events import (
    APPROVAL_REQUESTED,
    APPROVAL_RESOLVED,
    TOOL_FINISHED,
    TOOL_OUTPUT,
    TOOL_STARTED,
    Event,
)
from responses_app.protocol.text_buffer import clean_text
from responses_app.services.lifecycle.tool_ledger import (
    Intent,
    end_call,
    ledger_call_id,
    record_intent,
    start_call,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

PROGRESS_SECS = 0.2  # between two events of one call
MAX_PROGRESS_CHARS = 100_000  # of one call; its result is stored whole all the same
# Events that each call has at most once, over all attempts.
NOTED_ONCE = frozenset((APPROVAL_REQUESTED, APPROVAL_RESOLVED, TOOL_FINISHED))
DENIED = "Denied: this call was not allowed, and was not carried out."
EXPIRED = "Denied: this call was not allowed in time, and was not carried out."
CANT_WAIT = (
    "Denied: this call needs an approval, and a response that is not stored can't wait for one."
)


class ToolProgress:
    """What a tool prints while it runs, in few pieces: each is an event of the log."""

    def __init__(self, call_id: str, note: Callable[[Event], None]) -> None:
        self._call_id = call_id
        self._note = note
        self._pieces: list[str] = []
        self._left = MAX_PROGRESS_CHARS
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, piece: str) -> None:
        if self._is_closed or not piece or self._left <= 0:
            return
        self._pieces.append(piece[: self._left])
        self._left -= len(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_SECS, self._flush)

    def close(self) -> None:
        """The call is over: a tool that goes on printing adds nothing behind its end."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        text = "".join(self._pieces)
        self._pieces = []
        self._note({"type": TOOL_OUTPUT, "call_id": self._call_id, "text": clean_text(text)})


class ToolRunner:
    """The calls of one attempt.

    ``known`` are the calls that earlier attempts stored in the ledger, ``noted`` the events that
    they appended. A process may die between the two: the next attempt appends the missing event.
    """

    def __init__(
        self,
        row: Response,
        tools: Iterable[Tool],
        workspace: Path,
        note: Callable[[Event], None],
        known: dict[str, ToolEvent],
        noted: Collection[tuple[str, str]],
        offered: Sequence[str] = (),
        window: int = 0,
    ) -> None:
        self._row = row
        self._tools = {tool.name: tool for tool in tools}
        self._cap = ResultCap(window, self._tools)
        self._workspace = workspace
        self._note = note
        self._known = known
        self._noted = noted  # types of NOTED_ONCE, with call ids
        self._offered = offered  # names as the model knows them, also of the client's tools

    async def run(self, call: ToolCall) -> ToolResult | None:
        """The output of a call; a failure is an output too. None while it waits for approval."""
        known = self._known.get(ledger_call_id(self._row, call.call_id))
        if known is None:
            return await self._first_time(call)
        if self._row.is_stored and not _is_same(known, call):
            return ToolResult(
                "Error: another call of this turn has the same id; this one was not run.",
                is_error=True,
            )
        if known.is_over:
            return self._over(call, ToolStatus(known.status), known.output, known.secs)
        if known.status == ToolStatus.AWAITING_APPROVAL:
            return await self._waited(call, known)
        tool = self._tools.get(call.name)
        if tool is None or not tool.is_replay_safe:
            return await self._end(call, ToolStatus.INTERRUPTED, INTERRUPTED)
        return await self._start(call)

    # -- the ways of a call -------------------------------------------------------------
    async def _first_time(self, call: ToolCall) -> ToolResult | None:
        patience = timedelta(seconds=settings.HERMES_APPROVAL_TIMEOUT)
        reason = await self._approval_reason(call)
        tool = self._tools.get(call.name)
        intent = Intent(
            call.call_id,
            self._known_name(call),
            call.arguments,
            approval_reason=reason,
            approval_time=patience,
            approver=Approver.OPERATOR if tool is None else tool.approver,
            can_keep_consent=tool is None or tool.can_keep_consent,
        )
        recorded = await self._write(partial(record_intent, self._row, intent))
        if recorded.status is ToolStatus.DENIED:
            return self._over(call, recorded.status, CANT_WAIT, 0.0)
        if recorded.expires_at is not None:
            self._note_request(call, intent, recorded.expires_at)
            return None
        return await self._run(call)

    async def _waited(self, call: ToolCall, known: ToolEvent) -> ToolResult | None:
        assert known.expires_at is not None
        self._note_request(call, known, known.expires_at)
        overdue = ToolEvent.objects.overdue().filter(pk=known.pk)
        if not known.decision and not await database.read_with_retry(overdue.exists):
            return None
        decision = known.decision or "expired"
        self._note_call(APPROVAL_RESOLVED, call, decision=decision, by=known.decided_by)
        if decision == Decision.DENY:
            return await self._end(call, ToolStatus.DENIED, DENIED)
        if decision == "expired":
            return await self._end(call, ToolStatus.DENIED, EXPIRED)
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
        return await self._end(call, status, output, secs)

    async def _end(
        self, call: ToolCall, status: ToolStatus, output: str, secs: float = 0.0
    ) -> ToolResult:
        await self._write(partial(end_call, self._row, call.call_id, status, output))
        return self._over(call, status, output, secs)

    def _over(self, call: ToolCall, status: ToolStatus, output: str, secs: float) -> ToolResult:
        self._note_call(TOOL_FINISHED, call, status=str(status), duration_ms=round(1000 * secs))
        return ToolResult(self._cap.visible(call.name, output), status is not ToolStatus.COMPLETED)

    async def _write(self, step: Callable[[], T]) -> T:
        """Written behind the events that led to it, so that the log explains every row."""
        return await database.write_with_retry(step, response_id=self._row.pk)

    def _note_request(
        self, call: ToolCall, asked: Intent | ToolEvent, expires_at: datetime
    ) -> None:
        choices = list(decisions_for(can_keep_consent=asked.can_keep_consent))
        client_choices: list[Decision] = []
        if may_client_decide(self._row, asked.approver):
            client_choices = choices
        self._note_call(
            APPROVAL_REQUESTED,
            call,
            reason=asked.approval_reason,
            expires_at=expires_at.timestamp(),
            approver=str(asked.approver),
            choices=choices,
            client_choices=client_choices,
        )

    def _note_call(self, kind: str, call: ToolCall, **fields: Any) -> None:
        if (kind, call.call_id) not in self._noted:
            event = {"type": kind, "call_id": call.call_id, "name": call.name} | fields
            self._note(cast(Event, event))

    # -- the tool -----------------------------------------------------------------------
    def _known_name(self, call: ToolCall) -> str:
        """A name that a model made up is content, and would be a time series of its own."""
        if call.name in self._tools:
            return call.name
        return UNKNOWN_TOOL

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
        offered = ", ".join(self._offered) or "none"
        return f"Error: there is no tool named {name!r}. The tools are: {offered}."

    async def _execute(self, call: ToolCall, progress: ToolProgress) -> tuple[ToolStatus, str]:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolStatus.FAILED, self._unknown(call.name)
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            context = ToolContext(self._workspace, progress.add, self._cap.tokens)
            async with asyncio.timeout(tool.time_limit_secs) as limit:
                output = await tool.run(arguments, context)
                return ToolStatus.COMPLETED, clean_text(str(output))
        except Exception as error:  # the model gets the error, and the turn goes on
            if isinstance(error, TimeoutError) and limit.expired():
                message = f"Error: {call.name} did not end within {tool.time_limit_secs:g} s."
                return ToolStatus.FAILED, message
            cause = type(error).__name__
            logger.info("%s: the tool %s failed (%s).", self._row.pk, call.name, cause)
            return ToolStatus.FAILED, clean_text(f"Error: {error or cause}")


def _is_same(known: ToolEvent, call: ToolCall) -> bool:
    """A tool may come or go between two attempts, as an MCP server does."""
    is_same_tool = known.name in (call.name, UNKNOWN_TOOL)
    return is_same_tool and known.arguments == call.arguments
