"""Settle: the moves of a claimed response, each in one transaction with its events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from responses_app.eventlog import Fenced, Segment, insert_fenced, stamped
from responses_app.metrics import responses_ended, tokens_spent
from responses_app.models import Response, Session, ToolEvent
from responses_app.models.responses import MAX_ERROR_CODE_CHARS
from responses_app.models.statements import thread_database
from responses_app.protocol.item_states import StoredState
from responses_app.protocol.items import OUTPUTS, Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status
from responses_app.services.conversations import append_response
from responses_app.services.history.chain import input_of
from responses_app.services.history.transcript import count_messages
from responses_app.services.idempotency import forget_content
from responses_app.services.lifecycle.approval_requests import keep_open, open_requests
from responses_app.services.lifecycle.chain_columns import chain_columns_at_end
from responses_app.services.lifecycle.settling_hook import run_settling_hook

MILLISECOND = timedelta(milliseconds=1)
SERVER_CALL_ITEMS = (*OUTPUTS, "mcp_call")  # one for each call the server ran
MAX_COUNT = 2**31 - 1  # what the column of one turn holds


def begin(row: Response, segment: Segment) -> Segment:
    """A queued response starts; returns the segment as it is stored, for its readers."""
    stored = _store(row, segment)
    if not Response.objects.move(row.pk, row.attempt, Status.IN_PROGRESS):
        raise Fenced(row.pk)
    return stored


@dataclass(frozen=True)
class Settled:
    segment: Segment  # the terminal event as it is stored
    turns: int  # of the session; 0 if this did not ask

    def may_have_next(self, row: Response) -> bool:
        """Has the session a turn after this one? One that is admitted later does not wait for it."""
        return self.turns != row.turn


def settle(
    row: Response,
    segment: Segment,
    body: ResponseBody,
    deviations: Sequence[str] = (),
    first_output_at: datetime | None = None,
    known_input: list[Item] | None = None,
    states: list[StoredState] | None = None,
) -> Settled:
    """Store the status, the result and the terminal event together.

    The input is read where the caller does not know it.
    """
    now = timezone.now()
    columns = _timing(row, first_output_at, now) | _counts(body)
    columns["is_usage_estimated"] = segment.is_usage_estimated
    columns["incomplete_reason"] = (body["incomplete_details"] or {}).get("reason", "")
    columns["error_code"] = _error_code(body)
    columns["lease_owner"] = ""
    columns["lease_until"] = None
    new_input: list[Item] = []
    if row.is_stored:
        new_input = input_of(row.pk) if known_input is None else known_input
        columns["output"] = body["output"]
        columns["provider_state"] = states
        columns["message_count"] = count_messages(new_input) + count_messages(body["output"])
        columns["error"] = body["error"]
        columns["protocol_deviations"] = list(deviations)
        columns["last_position"] = segment.last_position
        columns["last_sequence"] = segment.next_sequence - 1
        columns |= chain_columns_at_end(row, new_input, body["output"])
    else:
        columns["error"] = body["error"] and {"code": body["error"]["code"]}
        columns["is_log_merged"] = True
        forget_content(row.pk)
    stored = _store(row, segment)  # before the move: an ended response takes no more events
    if not Response.objects.move(row.pk, row.attempt, Status(body["status"]), **columns):
        raise Fenced(row.pk)
    thread_database().on_commit(partial(_count_end, body, is_estimated=segment.is_usage_estimated))
    requests = open_requests(row, body["status"], body["output"])
    ToolEvent.objects.interrupt(row.pk)
    keep_open(row, requests)
    if row.conversation_id is not None and row.is_stored:
        append_response(row.conversation_id, row.pk, new_input, body["output"])
    turns = 0
    if body["usage"]:
        turns = Session.objects.add_usage(row.session_id, body["usage"])
    run_settling_hook(row, body)
    return Settled(stored, turns)


def _timing(row: Response, first_output_at: datetime | None, now: datetime) -> dict[str, Any]:
    first_output_ms = None
    if first_output_at is not None:
        first_output_ms = _ms_between(row.created_at, first_output_at)
    return {
        "first_output_ms": first_output_ms,
        "total_ms": _ms_between(row.created_at, now),
        "finished_at": now,
        "accessed_at": now,  # a long answer is not the least recently used one when it ends
    }


def _ms_between(admitted_at: datetime, at: datetime) -> int:
    """Another host may have admitted the turn, with a clock that is ahead of this one."""
    return max(0, (at - admitted_at) // MILLISECOND)


def _error_code(body: ResponseBody) -> str | None:
    if not body["error"]:
        return None
    return str(body["error"]["code"])[:MAX_ERROR_CODE_CHARS]


def _counts(body: ResponseBody) -> dict[str, Any]:
    usage = body["usage"] or {"input_tokens": 0, "output_tokens": 0}
    return {
        "usage": body["usage"],
        "input_tokens": min(usage["input_tokens"], MAX_COUNT),
        "output_tokens": min(usage["output_tokens"], MAX_COUNT),
        "tool_calls": sum(item["type"] in SERVER_CALL_ITEMS for item in body["output"]),
    }


def _count_end(body: ResponseBody, *, is_estimated: bool) -> None:
    responses_ended.labels(body["status"]).inc()
    usage = body["usage"]
    if usage is None:
        return
    source = "upstream"
    if is_estimated:
        source = "estimate"
    tokens_spent.labels("input", source).inc(usage["input_tokens"])
    tokens_spent.labels("output", source).inc(usage["output_tokens"])


def _store(row: Response, segment: Segment) -> Segment:
    segment = stamped(segment)
    if row.is_stored and not insert_fenced([segment]):
        raise Fenced(row.pk)
    return segment
