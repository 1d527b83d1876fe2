"""Archive: whole responses as records that another server can take in.

A record is plain JSON and holds everything that belongs to one response: the row, its session and
conversation, the input, the log with its commit times, and the ledger of its tools.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from responses_app.eventlog.reading import read_whole
from responses_app.models import Conversation, ConversationItem, Response, Session, ToolEvent
from responses_app.models.responses import ResponseQuerySet
from responses_app.protocol.sse import decode_frames
from responses_app.protocol.status import TERMINAL
from responses_app.services.history.chain import input_of

Record = dict[str, Any]
T = TypeVar("T", bound=Model)

FORMAT = 1
PAGE_ROWS = 50  # bounds what is in memory at once
# Columns that say how a row is worked on, not what it is; and those that are told by names instead of numbers.
RESPONSE_LEFT_OUT = {
    "owner",
    "session",
    "conversation",
    "previous",
    "lease_owner",
    "lease_until",
    "parked_until",
}
RESPONSE_LEFT_OUT.add("is_log_merged")
# Values that are carried on along a chain: they follow from the rows before.
RESPONSE_LEFT_OUT |= {
    "chain_root",
    "chain_depth",
    "instructions_at",
    "compaction_at",
    "context_tokens",
}
SESSION_LEFT_OUT = {"id", "owner", "parent", "fork_point", "has_server_history"}
TOOL_LEFT_OUT = {"id", "response"}
# Archives keep the names that columns had when their format was fixed.
ARCHIVE_NAMES = {
    "protocol_deviations": "quirks",
    "chat_context_hash": "spoken_hash",
    "is_history_in_chat_form": "is_history_spoken",
}


@dataclass(frozen=True)
class Selection:
    """Which responses are meant; nothing said means all."""

    ids: tuple[str, ...] = ()
    owner_id: int | None = None
    session: str | None = None
    statuses: tuple[str, ...] = ()
    model: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_everything(self) -> bool:
        return self == Selection(owner_id=self.owner_id)

    def rows(self) -> ResponseQuerySet:
        wanted = Q()
        if self.ids:
            wanted &= Q(pk__in=self.ids)
        if self.statuses:
            wanted &= Q(status__in=self.statuses)
        given = {
            "owner_id": self.owner_id,
            "session__public_id": self.session,
            "model": self.model,
            "created_at__gte": self.since,
            "created_at__lt": self.until,
        }
        return Response.objects.filter(
            wanted, **{name: value for name, value in given.items() if value is not None}
        )


def ended_responses(rows: ResponseQuerySet) -> Iterator[Response]:
    """Oldest first, so that what was continued comes before what continues it."""
    related = ("owner", "session__parent", "conversation__session")
    return _paged(rows.filter(status__in=TERMINAL).select_related(*related))


def _paged(rows: QuerySet[T]) -> Iterator[T]:
    """A page at a time: no cursor stays open, and whoever reads slowly holds nothing up."""
    ordered = rows.order_by("created_at", "pk")
    after = Q()
    while True:
        page: list[Any] = list(ordered.filter(after)[:PAGE_ROWS])
        yield from page
        if len(page) < PAGE_ROWS:
            return
        last = page[-1]
        after = Q(created_at__gt=last.created_at) | Q(created_at=last.created_at, pk__gt=last.pk)


def response_record(row: Response) -> Record:
    segments = read_whole(row.pk)
    marks = [
        mark.split(":") for segment in segments for mark in segment.commit_marks.split(",") if mark
    ]
    tools = ToolEvent.objects.filter(response_id=row.pk).order_by("pk")
    return {
        "record": "response",
        "format": FORMAT,
        "owner": row.owner.get_username(),
        "session": session_record(row.session),
        "conversation": None if row.conversation is None else conversation_head(row.conversation),
        "previous": row.previous_id,
        "response": columns(row, RESPONSE_LEFT_OUT),
        "input_items": input_of(row.pk),
        "events": list(decode_frames(segment.data for segment in segments)),
        "commits": [[int(position), int(at)] for position, at in marks],
        "tool_events": [columns(tool, TOOL_LEFT_OUT) for tool in tools],
    }


def session_record(session: Session) -> Record:
    told = columns(session, SESSION_LEFT_OUT)
    return told | {
        "parent": None if session.parent is None else session.parent.public_id,
        "fork_point": session.fork_point_id,
    }


def conversation_head(conversation: Conversation) -> Record:
    return {
        "id": conversation.pk,
        "name": conversation.name,
        "metadata": conversation.metadata,
        "session": conversation.session.public_id,
        "created_at": conversation.created_at,
    }


def conversations(selection: Selection) -> Iterator[Record]:
    """The items of conversations, in order; they come behind the responses that they point at."""
    found = Conversation.objects.select_related("session__parent", "owner")
    if selection.owner_id is not None:
        found = found.filter(owner_id=selection.owner_id)
    if not selection.is_everything:
        found = found.filter(pk__in=selection.rows().values("conversation_id"))
    for conversation in _paged(found):
        items = ConversationItem.objects.filter(conversation=conversation).order_by("position")
        yield {
            "record": "conversation",
            "format": FORMAT,
            "owner": conversation.owner.get_username(),
            "session": session_record(conversation.session),
            "conversation": conversation_head(conversation),
            "items": list(items.values("position", "item_id", "response_id", "item")),
        }


def columns(row: Model, left_out: Iterable[str]) -> Record:
    """The values of a row by the names that archives use."""
    values: Record = {}
    for field in row._meta.concrete_fields:
        if field.name not in left_out:
            values[ARCHIVE_NAMES.get(field.name, field.name)] = getattr(row, field.attname)
    return values
