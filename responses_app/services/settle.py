"""Settle: the moves of a claimed response, each in one transaction with its events."""

from typing import Any

from django.utils import timezone

from responses_app.eventlog import Fenced, Segment
from responses_app.eventlog.segments import insert_fenced
from responses_app.fold import ResponseBody
from responses_app.models import Response, Session, ToolEvent
from responses_app.states import Status


def begin(row: Response, segment: Segment) -> None:
    """A queued response starts."""
    if not Response.objects.move(row.pk, row.attempt, Status.IN_PROGRESS):
        raise Fenced(row.pk)
    _store(row, segment)


def settle(row: Response, segment: Segment, body: ResponseBody) -> None:
    """The end: the status, the result and the terminal event, or nothing of them."""
    fields: dict[str, Any] = {
        "usage": body["usage"],
        "incomplete_reason": (body["incomplete_details"] or {}).get("reason", ""),
        "finished_at": timezone.now(),
        "lease_owner": "",
        "lease_until": None,
    }
    if row.is_stored:
        fields |= {
            "output": body["output"],
            "error": body["error"],
            "last_position": segment.last_position,
            "last_sequence": segment.next_sequence - 1,
        }
    else:
        fields |= {"error": body["error"] and {"code": body["error"]["code"]}, "is_log_merged": True}
    if not Response.objects.move(row.pk, row.attempt, Status(body["status"]), **fields):
        raise Fenced(row.pk)
    _store(row, segment)
    ToolEvent.objects.interrupt(row.pk)
    if body["usage"]:
        Session.objects.add_usage(row.session_id, body["usage"])


def _store(row: Response, segment: Segment) -> None:
    if row.is_stored and not insert_fenced([segment]):
        raise Fenced(row.pk)
