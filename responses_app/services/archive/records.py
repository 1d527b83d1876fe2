"""The records of an archive: whole responses that another server can restore.

A record is plain JSON and holds everything that belongs to one response: the row, its session and
conversation, the input, the log with its commit times, and the ledger of its tools.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from responses_app.eventlog import Segment, read_whole
from responses_app.models import (
    Conversation,
    ConversationItem,
    Response,
    ResponseQuerySet,
    Session,
    ToolEvent,
)
from responses_app.protocol.sse import decode_frames
from responses_app.protocol.status import TERMINAL
from responses_app.services.history.chain import input_of

Record = dict[str, Any]
T = TypeVar("T", bound=Model)

FORMAT = 1
PAGE_ROWS = 50  # bounds what is in memory at once
# Columns of the work on a row, and those that a record names by public ids.
RESPONSE_LEFT_OUT = {
    "owner",
    "session",
    "conversation",
    "previous",
    "lease_owner",
    "lease_until",
    "parked_until",
    "is_log_merged",
}
# The events of a record hold it.
RESPONSE_LEFT_OUT |= {"provider_state"}
# Columns that follow from the rows before in the chain.
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
    """Which responses are exported; without any condition, all."""

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
        rows = Response.objects.all()
        if self.ids:
            rows = rows.filter(pk__in=self.ids)
        if self.statuses:
            rows = rows.filter(status__in=self.statuses)
        if self.owner_id is not None:
            rows = rows.filter(owner_id=self.owner_id)
        if self.session is not None:
            rows = rows.filter(session__public_id=self.session)
        if self.model is not None:
            rows = rows.filter(model=self.model)
        if self.since is not None:
            rows = rows.filter(created_at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(created_at__lt=self.until)
        return rows


def ended_responses(rows: ResponseQuerySet) -> Iterator[Response]:
    """Oldest first, so that what was continued comes before what continues it."""
    related = ("owner", "session__parent", "conversation__session")
    return _paged(rows.filter(status__in=TERMINAL).select_related(*related))


def _paged(rows: QuerySet[T]) -> Iterator[T]:
    """A page at a time: no cursor stays open, so a slow reader blocks no other transaction."""
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
    conversation = None
    if row.conversation is not None:
        conversation = conversation_head(row.conversation)
    tools = ToolEvent.objects.filter(response_id=row.pk).order_by("pk")
    return {
        "record": "response",
        "format": FORMAT,
        "owner": row.owner.get_username(),
        "session": session_record(row.session),
        "conversation": conversation,
        "previous": row.previous_id,
        "response": columns(row, RESPONSE_LEFT_OUT),
        "input_items": input_of(row.pk),
        "events": list(decode_frames(segment.data for segment in segments)),
        "commits": _commits(segments),
        "tool_events": [columns(tool, TOOL_LEFT_OUT) for tool in tools],
    }


def _commits(segments: Iterable[Segment]) -> list[list[int]]:
    """The last position of each commit, and its time in milliseconds."""
    commits = []
    for segment in segments:
        for mark in filter(None, segment.commit_marks.split(",")):
            position, at_ms = mark.split(":")
            commits.append([int(position), int(at_ms)])
    return commits


def session_record(session: Session) -> Record:
    record = columns(session, SESSION_LEFT_OUT)
    record["parent"] = None
    if session.parent is not None:
        record["parent"] = session.parent.public_id
    record["fork_point"] = session.fork_point_id
    return record


def conversation_head(conversation: Conversation) -> Record:
    return {
        "id": conversation.pk,
        "name": conversation.name,
        "metadata": conversation.metadata,
        "session": conversation.session.public_id,
        "created_at": conversation.created_at,
    }


def conversations(selection: Selection) -> Iterator[Record]:
    """The items of conversations, in order; their responses come before them."""
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
