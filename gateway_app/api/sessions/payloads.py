"""A session as Hermes' clients see it."""

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, Count, OuterRef, Subquery, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from gateway_app.api.sessions.transcript import session_messages
from gateway_app.runtime.recorder import INTERNAL_TOOL_PREFIX
from responses_app.models import InputItem, Response, Session, ToolEvent
from responses_app.models.sessions import SessionQuerySet
from responses_app.protocol.items import Item
from responses_app.services.history.transcript import Message, messages_of

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
    summed = turns.values("session_id").annotate(own=Sum("message_count"), **sums)
    totals: dict[int, dict[str, Any]] = {row["session_id"]: {**row} for row in summed}
    calls = ToolEvent.objects.filter(response__session_id__in=ids).exclude(
        name__startswith=INTERNAL_TOOL_PREFIX
    )
    called = dict(calls.order_by().values_list("response__session_id").annotate(Count("pk")))
    return [
        _shown(session, totals.get(session.pk, {}), called.get(session.pk, 0))
        for session in sessions
    ]


def _shown(session: Session, totals: dict[str, Any], tool_calls: int) -> dict[str, Any]:
    messages = session_messages(session) if session.fork_point_id is not None else None
    first: Item | None = session.first_item  # type: ignore[attr-defined]
    beginning = messages if messages is not None else messages_of([first] if first else [])
    return {
        "id": session.public_id,
        "source": session.source,
        "user_id": str(session.owner_id),
        "model": session.model or session.newest_model,  # type: ignore[attr-defined]
        "title": session.title or None,
        "started_at": session.created_at.timestamp(),
        "ended_at": None if session.ended_at is None else session.ended_at.timestamp(),
        "end_reason": session.end_reason or None,
        "message_count": len(messages) if messages is not None else totals.get("own") or 0,
        "turn_count": session.turn_count,
        "tool_call_count": tool_calls,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        **{name: totals.get(name) or 0 for name in DETAILS},
        # Nothing here counts calls of the model or knows its prices.
        **dict.fromkeys(("estimated_cost_usd", "actual_cost_usd", "api_call_count")),
        "parent_session_id": None if session.parent is None else session.parent.public_id,
        "forked_from": session.fork_point_id,
        "last_active": session.last_active_at.timestamp(),
        "preview": _preview(beginning),
        "pinned": session.is_pinned,
        "archived": session.is_archived,
        "hidden": session.is_hidden,
        "unread": session.is_unread,
        "turn_policy": session.turn_policy,
        "has_system_prompt": bool(session.instructions),
        "has_model_config": bool(session.model),
    }


def _preview(messages: list[Message]) -> str | None:
    content = next((message["content"] for message in messages if message["role"] == "user"), None)
    if content is None:
        return None
    said = (
        content
        if isinstance(content, str)
        else " ".join(part.get("text", "[image]") for part in content)
    )
    line = " ".join(said.split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"
