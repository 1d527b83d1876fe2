"""A session as Hermes' clients see it."""

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, Count, OuterRef, Subquery, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from gateway_app.api.sessions.renderers import outcome_fields, runtime_fields
from gateway_app.api.sessions.transcript import session_messages
from gateway_app.api.tool_calls import shortened
from gateway_app.runtime.unseen_calls import INTERNAL_TOOL_PREFIX
from responses_app.models import InputItem, Response, Session, SessionQuerySet, ToolEvent
from responses_app.protocol.ids import run_id_of
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.services.history.transcript import (
    Message,
    messages_of,
    text_of_output,
    unanswered_calls,
)
from responses_app.services.lifecycle.admission import Admitted

PREVIEW_CHARS = 80
DETAILS = {
    "cache_read_tokens": "usage__input_tokens_details__cached_tokens",
    "cache_write_tokens": "usage__input_tokens_details__cache_write_tokens",
    "reasoning_tokens": "usage__output_tokens_details__reasoning_tokens",
}


def annotated_sessions(owner_id: int) -> SessionQuerySet:
    """With values that their own rows lack: the first item, and the newest model."""
    kept = InputItem.objects.filter(
        response__session=OuterRef("pk"), response__deleted_at__isnull=True
    )
    first = kept.order_by("response__turn", "position")
    newest = Response.objects.filter(session=OuterRef("pk")).order_by("-turn")
    return (
        Session.objects.of_owner(owner_id)
        .select_related("parent")
        .annotate(
            first_item=Subquery(first.values("item")[:1]),
            newest_model=Subquery(newest.values("model")[:1]),
        )
    )


def session_payloads(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Two more queries for a whole page, and one transcript for each fork."""
    ids = [session.pk for session in sessions]
    sums = {name: Sum(Cast(KT(path), BigIntegerField())) for name, path in DETAILS.items()}
    turns = Response.objects.filter(session_id__in=ids, deleted_at__isnull=True).order_by()
    totals: dict[int, dict[str, Any]] = {}
    for row in turns.values("session_id").annotate(own=Sum("message_count"), **sums):
        totals[row["session_id"]] = dict(row)
    tool_events = ToolEvent.objects.filter(response__session_id__in=ids)
    calls = tool_events.exclude(name__startswith=INTERNAL_TOOL_PREFIX).order_by()
    call_counts = dict(calls.values_list("response__session_id").annotate(Count("pk")))
    payloads = []
    for session in sessions:
        counted = totals.get(session.pk, {})
        payloads.append(_session_payload(session, counted, call_counts.get(session.pk, 0)))
    return payloads


def _session_payload(session: Session, totals: dict[str, Any], tool_calls: int) -> dict[str, Any]:
    message_count = totals.get("own") or 0
    if session.fork_point_id is not None:
        messages = session_messages(session)
        message_count = len(messages)
    else:
        first: Item | None = session.first_item  # type: ignore[attr-defined]
        messages = messages_of([first] if first else [])
    ended_at = parent_id = None
    if session.ended_at is not None:
        ended_at = session.ended_at.timestamp()
    if session.parent is not None:
        parent_id = session.parent.public_id
    return {
        "id": session.public_id,
        "source": session.source,
        "user_id": str(session.owner_id),
        "model": session.model or session.newest_model,  # type: ignore[attr-defined]
        "title": session.title or None,
        "started_at": session.created_at.timestamp(),
        "ended_at": ended_at,
        "end_reason": session.end_reason or None,
        "message_count": message_count,
        "turn_count": session.turn_count,
        "tool_call_count": tool_calls,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cache_read_tokens": totals.get("cache_read_tokens") or 0,
        "cache_write_tokens": totals.get("cache_write_tokens") or 0,
        "reasoning_tokens": totals.get("reasoning_tokens") or 0,
        # This server neither counts calls of the model nor has its prices.
        "estimated_cost_usd": None,
        "actual_cost_usd": None,
        "api_call_count": None,
        "parent_session_id": parent_id,
        "forked_from": session.fork_point_id,
        "last_active": session.last_active_at.timestamp(),
        "preview": _preview(messages),
        "pinned": session.is_pinned,
        "archived": session.is_archived,
        "hidden": session.is_hidden,
        "unread": session.is_unread,
        "turn_policy": session.turn_policy,
        "has_system_prompt": bool(session.instructions),
        "has_model_config": bool(session.model),
    }


def _preview(messages: list[Message]) -> str | None:
    """The first message of the user on one line."""
    for message in messages:
        if message["role"] == "user" and message["content"] is not None:
            content = message["content"]
            if not isinstance(content, str):
                content = " ".join(part.get("text", "[image]") for part in content)
            return shortened(content, PREVIEW_CHARS)
    return None


def turn_completion(admitted: Admitted, final: ResponseBody) -> dict[str, Any]:
    outcome = outcome_fields(final)
    message: dict[str, Any] = {"role": "assistant", "content": text_of_output(final["output"])}
    calls = unanswered_calls(final["output"])
    if calls:
        message["tool_calls"] = calls
    return {
        "object": "hermes.session.chat.completion",
        "session_id": admitted.session_id,
        "run_id": run_id_of(admitted.response_id),
        "response_id": admitted.response_id,
        "message": message,
        "usage": final["usage"],
        "runtime": runtime_fields(final),
        "completed": outcome["completed"],
        "partial": outcome["partial"],
        "interrupted": outcome["interrupted"],
    }
