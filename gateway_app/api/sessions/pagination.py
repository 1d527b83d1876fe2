"""Pages of sessions and of messages: by number as Hermes has them, or by the id they follow."""

from typing import Any

from django.http import QueryDict

from gateway_app.api.sessions.payloads import session_objects, shown_sessions
from responses_app.api.pagination import (
    Page,
    cut,
    cut_items,
    envelope,
    read_count,
    read_page,
    read_word,
)
from responses_app.models import Session
from responses_app.models.sessions import SessionQuerySet
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import choice
from responses_app.requests.headers import read_flag
from responses_app.services.history.transcript import Message

SESSIONS = 50
MAX_SESSIONS = 200
MAX_MESSAGES = 500
MAX_OFFSET = 10**9
ORDERS = ("oldest", "latest")
ACTIVITY = ("last_active_at", "pk")


def page_of_sessions(owner_id: int, params: QueryDict) -> dict[str, Any]:
    """The most recently active first."""
    page = read_page(params, SESSIONS, MAX_SESSIONS)
    offset = _read_offset(params)
    rows = _filtered(shown_sessions(owner_id), params)
    if offset:
        ordered = rows.order_by(
            *(("" if page.is_ascending else "-") + column for column in ACTIVITY)
        )
        found = list(ordered[offset : offset + page.limit + 1])
        shown, has_more = found[: page.limit], len(found) > page.limit
    else:
        mine = Session.objects.of_owner(owner_id)
        shown, has_more = cut(
            rows, page, ACTIVITY, lambda session_id: mine.filter(public_id=session_id)
        )
    listed = {
        **envelope(session_objects(shown), has_more=has_more),
        "limit": page.limit,
        "offset": offset,
    }
    if has_more and not (offset or page.after or page.before or page.is_ascending):
        listed["data"] += session_objects(_pinned_behind(rows, shown))
    return listed


def _pinned_behind(rows: SessionQuerySet, shown: list[Session]) -> list[Session]:
    """The first page has every pinned session; the others come again in their place."""
    ids = [session.pk for session in shown]
    behind = rows.filter(is_pinned=True).exclude(pk__in=ids)
    return list(behind.order_by(*(f"-{column}" for column in ACTIVITY))[:MAX_SESSIONS])


def page_of_messages(messages: list[Message], params: QueryDict) -> dict[str, Any]:
    """Always in the order in which they were said; ``order`` is the end from which is counted."""
    order = choice(*ORDERS)(params.get("order", "latest"), "order")
    limit = read_count(params, "limit", MAX_MESSAGES, 1, MAX_MESSAGES)
    offset = _read_offset(params)
    after, before = read_word(params, "after"), read_word(params, "before")
    if after or before:
        shown, has_more = cut_items(messages, Page(after, before, limit, is_ascending=True))
    else:
        rest = (
            messages[offset:] if order == "oldest" else messages[: max(0, len(messages) - offset)]
        )
        shown = rest[:limit] if order == "oldest" else rest[-limit:]
        has_more = len(rest) > limit
    pagination = {"limit": limit, "offset": offset, "order": order, "returned": len(shown)}
    return {**envelope(shown, has_more=has_more), "pagination": pagination}


def _filtered(rows: SessionQuerySet, params: QueryDict) -> SessionQuerySet:
    source, title = read_word(params, "source"), read_word(params, "title")
    if source is not None:
        rows = rows.filter(source=source)
    if title is not None:
        rows = rows.filter(title=title)
    if not read_flag(params.get("include_hidden"), "include_hidden"):
        rows = rows.filter(is_hidden=False)
    if not read_flag(params.get("include_children", "true"), "include_children"):
        rows = rows.filter(parent__isnull=True)
    return rows


def _read_offset(params: QueryDict) -> int:
    offset = read_count(params, "offset", 0, 0, MAX_OFFSET)
    if offset and (params.get("after") or params.get("before")):
        raise InvalidRequest("Send offset or a cursor, not both.", param="offset")
    return offset
