"""The records of an archive: whole responses that another server can restore.

A record is plain JSON and holds everything that belongs to one response: the row, its session and
conversation, the input, the log with its commit times, and the ledger of its tools.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Model, Q, QuerySet

from responses_app.eventlog import Segment, read_stored_logs, up_to_end
from responses_app.models import (
    Conversation,
    ConversationItem,
    Response,
    ResponseQuerySet,
    Session,
    ToolEvent,
)
from responses_app.protocol.sse import frame_data, split_frames
from responses_app.services.history.chain import inputs_of
from responses_app.services.keys import actor_names

Record = dict[str, Any]

FORMAT = 1
PAGE_ROWS = 100
GROUP_EVENTS = 5_000  # whose logs are in memory at once, unless one response has more
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
# Columns that are newer than the format: an earlier version would refuse them here.
RESPONSE_LEFT_OUT |= {"error_code", "retry_of"}
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


def ended_responses(rows: ResponseQuerySet) -> Iterator[list[Response]]:
    """Oldest first, so that what was continued comes before what continues it, some at a time."""
    # Not by status: SQLite would sort all ended rows for each page.
    ended = rows.filter(finished_at__isnull=False)
    related = ("owner", "session__parent", "conversation__session")
    for page in _pages(ended):
        found = Response.objects.select_related(*related).in_bulk(page)
        kept = [found[pk] for pk in page if pk in found]  # others were pruned meanwhile
        yield from _bounded(kept)


def _pages(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Keys, a page at a time: no cursor stays open, so a slow reader blocks no transaction."""
    ordered = rows.order_by("created_at", "pk").values_list("created_at", "pk")
    after = Q()
    while page := list(ordered.filter(after)[:PAGE_ROWS]):
        yield [pk for _, pk in page]
        at, last = page[-1]
        after = Q(created_at__gte=at) & ~Q(created_at=at, pk__lte=last)


def _bounded(rows: list[Response]) -> Iterator[list[Response]]:
    """Groups whose logs fit into memory together."""
    group: list[Response] = []
    events = 0
    for row in rows:
        events += row.last_position + 1
        if group and events > GROUP_EVENTS:
            yield group
            group, events = [], row.last_position + 1
        group.append(row)
    if group:
        yield group


def response_records(rows: list[Response]) -> Iterator[Record]:
    """The records of some responses, with one query for each kind of row."""
    ids = [row.pk for row in rows]
    logs = read_stored_logs(ids)
    inputs = inputs_of(ids)
    tools: dict[str, list[Record]] = defaultdict(list)
    actors: set[str] = set()
    for tool in ToolEvent.objects.filter(response_id__in=ids).order_by("pk"):
        tools[tool.response_id].append(columns(tool, TOOL_LEFT_OUT))
        actors.add(tool.decided_by)
    for row in rows:
        actors |= {row.requested_by, row.cancel_requested_by}
    names = actor_names(actors)
    for row in rows:
        segments = up_to_end(logs[row.pk])
        conversation = None
        if row.conversation is not None:
            conversation = conversation_head(row.conversation)
        yield {
            "record": "response",
            "format": FORMAT,
            "owner": row.owner.get_username(),
            "session": session_record(row.session),
            "conversation": conversation,
            "previous": row.previous_id,
            "retry_of": row.retry_of,
            "keys": _named(names, row, tools[row.pk]),
            "response": columns(row, RESPONSE_LEFT_OUT),
            "input_items": inputs[row.pk],
            "events": _events(segments),
            "commits": _commits(segments),
            "tool_events": tools[row.pk],
        }


def _named(names: dict[str, str], row: Response, tools: list[Record]) -> dict[str, str]:
    """The names of the keys that a record mentions: their numbers are of this server alone."""
    mentioned = {row.requested_by, row.cancel_requested_by}
    mentioned |= {tool["decided_by"] for tool in tools}
    return {actor: names[actor] for actor in sorted(mentioned) if actor in names}


def _events(segments: Iterable[Segment]) -> list[orjson.Fragment]:
    """As they are stored: they need not be read to be written."""
    events: list[orjson.Fragment] = []
    for segment in segments:
        events += [orjson.Fragment(frame_data(frame)) for frame in split_frames(segment.data)]
    return events


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


def selected_conversations(selection: Selection) -> QuerySet[Conversation]:
    found = Conversation.objects.select_related("session__parent", "owner")
    if selection.owner_id is not None:
        found = found.filter(owner_id=selection.owner_id)
    if not selection.is_everything:
        found = found.filter(pk__in=selection.rows().values("conversation_id"))
    return found


def conversations(selection: Selection) -> Iterator[Record]:
    """The items of conversations, in order; their responses come before them."""
    for conversation in _read(selected_conversations(selection)):
        items = ConversationItem.objects.filter(conversation=conversation).order_by("position")
        yield {
            "record": "conversation",
            "format": FORMAT,
            "owner": conversation.owner.get_username(),
            "session": session_record(conversation.session),
            "conversation": conversation_head(conversation),
            "items": list(items.values("position", "item_id", "response_id", "item")),
        }


def _read(found: QuerySet[Conversation]) -> Iterator[Conversation]:
    for page in _pages(found):
        rows = found.in_bulk(page)
        yield from [rows[pk] for pk in page if pk in rows]


def columns(row: Model, left_out: Iterable[str]) -> Record:
    """The values of a row by the names that archives use."""
    values: Record = {}
    for field in row._meta.concrete_fields:
        if field.name not in left_out:
            values[ARCHIVE_NAMES.get(field.name, field.name)] = getattr(row, field.attname)
    return values
