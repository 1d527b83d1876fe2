"""Runs tools through the ledger: the intent is stored before a call, its result before anything else."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson
from django.conf import settings

from gateway_app.agent.tools import (
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
)
from responses_app.database import database
from responses_app.http.principals import may_client_decide
from responses_app.metrics import tool_seconds
from responses_app.models import Response, ToolEvent
from responses_app.models.tool_events import (
    UNKNOWN_TOOL,
    Approver,
    Decision,
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

MAX_SHOWN_CHARS = (
    50_000  # what the model and the client see of an output; the ledger keeps all of it
)
PROGRESS_SECS = 0.2  # between two events of one call
MAX_PROGRESS_CHARS = 100_000  # of one call; its result is stored whole all the same
TOLD_ONCE = frozenset((APPROVAL_REQUESTED, APPROVAL_RESOLVED, TOOL_FINISHED))
DENIED = "Denied: this call was not allowed, and was not carried out."
EXPIRED = "Denied: nobody allowed this call in time, and it was not carried out."
CANT_WAIT = "Denied: this call needs somebody's consent, which a response that is not stored can't wait for."


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
        text, self._pieces = "".join(self._pieces), []
        self._note({"type": TOOL_OUTPUT, "call_id": self._call_id, "text": clean_text(text)})


class ToolRunner:
    """The calls of one attempt; ``known`` are those that earlier attempts wrote down, ``told`` what they noted.

    A process may die between a step in the ledger and the note on it: the next attempt adds the note.
    """

    def __init__(
        self,
        row: Response,
        tools: Iterable[Tool],
        workspace: Path,
        note: Callable[[Event], None],
        known: dict[str, ToolEvent],
        told: Collection[tuple[str, str]],
    ) -> None:
        self._row = row
        self._tools = {tool.name: tool for tool in tools}
        self._workspace = workspace
        self._note = note
        self._known = known
        self._told = told  # event types of TOLD_ONCE, with call ids

    async def run(self, call: ToolCall) -> ToolResult | None:
        """The output of a call; a failure is an output too. None means it waits for somebody's consent."""
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
        recorded = await self._write(lambda: record_intent(self._row, intent))
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
        self._tell(APPROVAL_RESOLVED, call, decision=decision, by=known.decided_by)
        if decision in (Decision.DENY, "expired"):
            return await self._end(
                call, ToolStatus.DENIED, DENIED if decision == Decision.DENY else EXPIRED
            )
        return await self._start(call)

    async def _start(self, call: ToolCall) -> ToolResult:
        """A call that has its row already."""
        await self._write(lambda: start_call(self._row, call.call_id))
        return await self._run(call)

    async def _run(self, call: ToolCall) -> ToolResult:
        began = time.monotonic()
        self._tell(TOOL_STARTED, call)
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
        await self._write(lambda: end_call(self._row, call.call_id, status, output))
        return self._over(call, status, output, secs)

    def _over(self, call: ToolCall, status: ToolStatus, output: str, secs: float) -> ToolResult:
        self._tell(TOOL_FINISHED, call, status=str(status), duration_ms=round(1000 * secs))
        return ToolResult(shown(output), status is not ToolStatus.COMPLETED)

    async def _write(self, step: Callable[[], T]) -> T:
        """Behind the events that led to the step: after a crash, the log explains every row of the ledger."""
        return await database.write_with_retry(step, response_id=self._row.pk)

    def _note_request(
        self, call: ToolCall, asked: Intent | ToolEvent, expires_at: datetime
    ) -> None:
        choices = list(decisions_for(can_keep_consent=asked.can_keep_consent))
        self._tell(
            APPROVAL_REQUESTED,
            call,
            reason=asked.approval_reason,
            expires_at=expires_at.timestamp(),
            approver=str(asked.approver),
            choices=choices,
            client_choices=choices if may_client_decide(self._row, asked.approver) else [],
        )

    def _tell(self, kind: str, call: ToolCall, **told: Any) -> None:
        if (kind, call.call_id) not in self._told:
            event = {"type": kind, "call_id": call.call_id, "name": call.name, **told}
            self._note(cast(Event, event))

    # -- the tool -----------------------------------------------------------------------
    def _known_name(self, call: ToolCall) -> str:
        """A name that a model made up is content, and would be a time series of its own."""
        return call.name if call.name in self._tools else UNKNOWN_TOOL

    async def _approval_reason(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None or tool.asks_approval is None:
            return ""
        try:
            return await asyncio.to_thread(tool.asks_approval, _arguments(call))
        except ValueError:
            return ""  # it fails when it runs, and the model is told why

    async def _execute(self, call: ToolCall, progress: ToolProgress) -> tuple[ToolStatus, str]:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolStatus.FAILED, f"Error: there is no tool named {call.name!r}."
        try:
            context = ToolContext(self._workspace, progress.add)
            async with asyncio.timeout(tool.time_limit_secs) as limit:
                return ToolStatus.COMPLETED, clean_text(
                    str(await tool.run(_arguments(call), context))
                )
        except Exception as error:  # whatever a tool does, the model is told and the turn goes on
            if isinstance(error, TimeoutError) and limit.expired():
                return (
                    ToolStatus.FAILED,
                    f"Error: {call.name} did not end within {tool.time_limit_secs:g} s.",
                )
            cause = type(error).__name__
            logger.info("%s: the tool %s failed (%s).", self._row.pk, call.name, cause)
            return ToolStatus.FAILED, clean_text(f"Error: {error or type(error).__name__}")


def _is_same(known: ToolEvent, call: ToolCall) -> bool:
    """A tool may come or go between two attempts, as an MCP server does."""
    is_same_tool = known.name in (call.name, UNKNOWN_TOOL)
    return is_same_tool and known.arguments == call.arguments


def _arguments(call: ToolCall) -> dict[str, Any]:
    arguments = orjson.loads(call.arguments or "{}")
    if not isinstance(arguments, dict):
        raise ValueError("the arguments must be a JSON object")
    return arguments


def shown(output: str) -> str:
    """An output as the model and the client see it."""
    if len(output) <= MAX_SHOWN_CHARS:
        return output
    half = MAX_SHOWN_CHARS // 2
    cut = f"\n[... {len(output) - 2 * half} characters are left out here; the server's ledger has them ...]\n"
    return output[:half] + cut + output[-half:]
