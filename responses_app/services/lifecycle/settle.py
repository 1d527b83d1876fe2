"""Settle: the moves of a claimed response, each in one transaction with its events."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from responses_app.eventlog import Fenced, Segment
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.segments import stamped
from responses_app.metrics import responses_ended
from responses_app.models import Response, Session, ToolEvent
from responses_app.models.responses import Kind
from responses_app.protocol.items import OUTPUTS, Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status
from responses_app.services.conversations import append_response
from responses_app.services.history.chain import input_of
from responses_app.services.history.chain_values import Carried
from responses_app.services.history.resent_history import chat_form, hash_after
from responses_app.services.history.transcript import count_messages
from responses_app.services.idempotency import forget_content

MILLISECOND = timedelta(milliseconds=1)
MAX_COUNT = 2**31 - 1  # what the column of one turn holds


def begin(row: Response, segment: Segment) -> Segment:
    """A queued response starts; gives the segment as it is stored, for its readers."""
    stored = _store(row, segment)
    if not Response.objects.move(row.pk, row.attempt, Status.IN_PROGRESS):
        raise Fenced(row.pk)
    return stored


def settle(
    row: Response,
    segment: Segment,
    body: ResponseBody,
    quirks: Sequence[str] = (),
    first_output_at: datetime | None = None,
) -> Segment:
    """The end: the status, the result and the terminal event, or nothing of them; gives that event as it is stored."""
    now = timezone.now()
    fields: dict[str, Any] = {
        "usage": body["usage"],
        **_measures(row, body, first_output_at, now),
        "incomplete_reason": (body["incomplete_details"] or {}).get("reason", ""),
        "finished_at": now,
        "accessed_at": now,  # a long answer is not the least recently used one when it ends
        "lease_owner": "",
        "lease_until": None,
    }
    brought: list[Item] = []
    if row.is_stored:
        brought = input_of(row.pk)
        fields |= {
            "output": body["output"],
            "message_count": F("message_count") + count_messages(body["output"]),
            "error": body["error"],
            "quirks": list(quirks),
            "last_position": segment.last_position,
            "last_sequence": segment.next_sequence - 1,
            **_running_values(row, brought, body["output"]),
        }
    else:
        fields |= {
            "error": body["error"] and {"code": body["error"]["code"]},
            "is_log_merged": True,
        }
        forget_content(row.pk)
    stored = _store(row, segment)  # before the move: an ended response takes no more events
    if not Response.objects.move(row.pk, row.attempt, Status(body["status"]), **fields):
        raise Fenced(row.pk)
    transaction.on_commit(lambda: responses_ended.labels(body["status"]).inc())
    ToolEvent.objects.interrupt(row.pk)
    if row.conversation_id is not None and row.is_stored:
        append_response(row.conversation_id, row.pk, brought, body["output"])
    if body["usage"]:
        Session.objects.add_usage(row.session_id, body["usage"])
    return stored


def _measures(
    row: Response, body: ResponseBody, first_output_at: datetime | None, now: datetime
) -> dict[str, Any]:
    usage = body["usage"] or {"input_tokens": 0, "output_tokens": 0}
    return {
        "first_output_ms": None
        if first_output_at is None
        else (first_output_at - row.created_at) // MILLISECOND,
        "total_ms": (now - row.created_at) // MILLISECOND,
        "input_tokens": min(usage["input_tokens"], MAX_COUNT),
        "output_tokens": min(usage["output_tokens"], MAX_COUNT),
        "tool_calls": sum(item["type"] in (*OUTPUTS, "mcp_call") for item in body["output"]),
    }


def _running_values(row: Response, brought: list[Item], output: list[Item]) -> dict[str, Any]:
    """What the next turn goes on from. Nothing follows a compaction."""
    if row.kind == Kind.COMPACTION:
        return {}
    before = Response(context_tokens=0)
    if row.previous_id is not None:
        fields = ("context_hash", "spoken_hash", "context_tokens", "compaction_at")
        before = Response.objects.only(*fields).filter(pk=row.previous_id).first() or before
    carried = Carried(before.context_tokens, before.compaction_at)
    values = asdict(carried.behind(row.owner_id, row.pk, [*brought, *output]))
    if row.conversation_id is not None:
        return values  # its context is the conversation's items: no client resends a chain
    if row.previous_id is not None and not before.context_hash:
        return values  # what came before has no hash, so neither has this
    return values | {
        "context_hash": hash_after(before.context_hash, [*brought, *output]),
        "spoken_hash": hash_after(before.spoken_hash, [*brought, *chat_form(output)]),
    }


def _store(row: Response, segment: Segment) -> Segment:
    segment = stamped(segment)
    if row.is_stored and not insert_fenced([segment]):
        raise Fenced(row.pk)
    return segment
