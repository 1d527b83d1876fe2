"""Search by indexes: ids and their beginnings, whole names, and words of questions and answers."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull

from responses_app.models import Conversation, Response, SearchEntry, Session, ToolEvent
from responses_app.protocol.ids import RESPONSE_PREFIX
from responses_app.services.search.words import words_in

MAX_NAMED = 1000  # rows with the same name
MAX_TITLED = 10_000  # sessions with the same words in their titles
FEW = 2000  # rows that are read and sorted
# Up to so many are sorted by the database. The others are found on the way through the list, which
# is long where none of the newest rows match: 0.5 s in a table of 200,000.
MANY = 40_000
ELLIPSIS = "…"  # after the beginnings of ids in lists
HELP = (
    "An id (response, session, conversation or call) or the beginning of a response's id, "
    "an owner's name, or words of questions and answers."
)


def search_responses(rows: QuerySet[Response], term: str) -> QuerySet[Response]:
    """The responses of the first kind of object with this id or name; else those with these words.

    Each step is a condition on one column: no index serves several that are joined with OR.
    """
    beginning = term.removesuffix(ELLIPSIS)
    if len(beginning) > len(RESPONSE_PREFIX) and _may_begin_an_id(beginning):
        return rows.filter(_begins_with(beginning))
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
    called = list(calls[:MAX_NAMED])
    if called:
        return rows.filter(pk__in=called)
    return _with_words(rows, term)


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
    titled = Session.objects.filter(title__icontains=term).values_list("pk", flat=True)
    ids = set(titled[:MAX_TITLED])
    words = words_in(term)
    if not words:
        return rows.filter(pk__in=ids)
    few = SearchEntry.objects.response_ids(words, FEW + 1)
    if len(few) <= FEW:
        turns = Response.objects.filter(pk__in=few)
        return rows.filter(pk__in=ids.union(turns.values_list("session_id", flat=True)))
    found = SearchEntry.objects.with_words(words)
    if not SearchEntry.objects.response_ids(words, 1, MANY):
        turns = Response.objects.filter(pk__in=found.values("response_id"))
        return rows.filter(Q(pk__in=ids) | Q(pk__in=turns.values("session_id")))
    asked = Response.objects.filter(Exists(found.filter(response=OuterRef("pk"))))
    return rows.filter(Q(pk__in=ids) | Exists(asked.filter(session=OuterRef("pk"))))


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


def with_rows(responses: QuerySet[Any], related: QuerySet[Any]) -> QuerySet[Any]:
    """The responses that have one of the related rows.

    A few are found first and then sorted. Of very many, each page of the sorted list has some.
    """
    ids = list(related.values_list("response_id", flat=True)[: FEW + 1])
    if len(ids) <= FEW:
        return responses.filter(pk__in=set(ids))
    is_sorted = not related.values_list("pk")[MANY : MANY + 1]
    return _with_many(responses, related, is_sorted=is_sorted)


def _with_words(rows: QuerySet[Response], term: str) -> QuerySet[Response]:
    words = words_in(term)
    if not words:
        return rows.none()
    ids = SearchEntry.objects.response_ids(words, FEW + 1)
    if len(ids) <= FEW:
        return rows.filter(pk__in=ids)
    is_sorted = not SearchEntry.objects.response_ids(words, 1, MANY)
    return _with_many(rows, SearchEntry.objects.with_words(words), is_sorted=is_sorted)


def _with_many(
    responses: QuerySet[Any], related: QuerySet[Any], *, is_sorted: bool
) -> QuerySet[Any]:
    if is_sorted:
        return responses.filter(pk__in=related.values("response_id"))
    of_each = related.filter(response=OuterRef("pk")).values("pk")[:1]
    # No Exists: PostgreSQL makes a join of it, and computes the words of all rows for that.
    return responses.filter(IsNull(Subquery(of_each), False))


def _may_begin_an_id(text: str) -> bool:
    return text.isascii() and text.startswith(RESPONSE_PREFIX)


def _begins_with(beginning: str) -> Q:
    """PostgreSQL has an index for patterns; the order of SQLite's index is that of the bytes."""
    if connection.vendor != "sqlite":
        return Q(pk__startswith=beginning)
    after = beginning[:-1] + chr(ord(beginning[-1]) + 1)
    return Q(pk__gte=beginning, pk__lt=after)
