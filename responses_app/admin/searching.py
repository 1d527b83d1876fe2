"""Search by indexes: whole ids and names, and the text of the newest requests."""

import json

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from responses_app.models import Conversation, InputItem, Response, Session, ToolEvent

SEARCHED_ROWS = 10_000  # whose text is searched; older responses are found by their ids
MAX_NAMED = 1000  # rows with the same name
HELP = (
    "A whole id (response, session, conversation or call), an owner's name, "
    f"or text of one of the newest {SEARCHED_ROWS:,} requests."
)


def search_responses(rows: QuerySet[Response], term: str) -> QuerySet[Response]:
    """The responses of the first kind of object with this id or name; else those with this text.

    Each step is a condition on one column: no index serves several that are joined with OR.
    """
    if Response.objects.filter(pk=term).exists():
        return rows.filter(pk=term)
    sessions = Session.objects.filter(public_id=term)
    if sessions.exists():
        return rows.filter(session_id__in=list(sessions.values_list("pk", flat=True)[:MAX_NAMED]))
    owner = User.objects.filter(username=term).first()
    if owner is not None:
        return rows.filter(owner=owner)
    conversations = find_conversations(term)
    if conversations:
        return rows.filter(conversation_id__in=[conversation.pk for conversation in conversations])
    calls = ToolEvent.objects.filter(call_id=term).values_list("response_id", flat=True)
    return rows.filter(pk__in=list(calls[:MAX_NAMED]) or _asked_about(term))


def search_sessions(rows: QuerySet[Session], term: str) -> QuerySet[Session]:
    if Session.objects.filter(public_id=term).exists():
        return rows.filter(public_id=term)
    response = Response.objects.filter(pk=term).only("session_id").first()
    if response is not None:
        return rows.filter(pk=response.session_id)
    owner = User.objects.filter(username=term).first()
    if owner is not None:
        return rows.filter(owner=owner)
    conversations = find_conversations(term)
    if conversations:
        return rows.filter(pk__in=[conversation.session_id for conversation in conversations])
    newest = Session.objects.order_by("-last_active_at").values("pk")[:SEARCHED_ROWS]
    titled = Session.objects.filter(pk__in=newest, title__icontains=term).values("pk")
    asked = Response.objects.filter(pk__in=_asked_about(term)).values("session_id")
    return rows.filter(Q(pk__in=titled) | Q(pk__in=asked))


def search_conversations(rows: QuerySet[Conversation], term: str) -> QuerySet[Conversation]:
    owner = User.objects.filter(username=term).first()
    if owner is not None:
        return rows.filter(owner=owner)
    return rows.filter(pk__in=[conversation.pk for conversation in find_conversations(term)])


def search_tool_events(rows: QuerySet[ToolEvent], term: str) -> QuerySet[ToolEvent]:
    if Response.objects.filter(pk=term).exists():
        return rows.filter(response_id=term)
    return rows.filter(call_id=term)


def find_conversations(term: str) -> list[Conversation]:
    found = list(Conversation.objects.filter(pk=term))
    if not found:
        found = list(Conversation.objects.filter(name=term)[:MAX_NAMED])
    return found


def _asked_about(term: str) -> list[str]:
    """The newest responses with this text in their input."""
    # SQLite searches the text as it was written, with escapes; PostgreSQL removes most of them.
    escaped = json.dumps(term)[1:-1]
    plain = json.dumps(term, ensure_ascii=False)[1:-1]
    found = InputItem.objects.filter(Q(item__icontains=escaped) | Q(item__icontains=plain))
    newest = Response.objects.order_by("-created_at").values_list("created_at", flat=True)
    for oldest_searched in newest[SEARCHED_ROWS - 1 : SEARCHED_ROWS]:
        found = found.filter(response__created_at__gte=oldest_searched)
    ids = found.order_by("-response__created_at").values_list("response_id", flat=True)[:MAX_NAMED]
    return list(dict.fromkeys(ids))
