"""Restore: take records of an archive in, each checked first, stored in one transaction, and only once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model

from responses_app.eventlog import Numbering, Segment
from responses_app.eventlog.merging import merge, replace_with_merged
from responses_app.eventlog.segments import up_to_end
from responses_app.models import (
    Conversation,
    ConversationItem,
    InputItem,
    Response,
    Session,
    ToolEvent,
)
from responses_app.models.responses import Kind
from responses_app.protocol.events import Event, is_internal
from responses_app.protocol.snapshot import fold
from responses_app.protocol.status import TERMINAL
from responses_app.services.archive.records import (
    FORMAT,
    RESPONSE_LEFT_OUT,
    SESSION_LEFT_OUT,
    TOOL_LEFT_OUT,
    Record,
)
from responses_app.services.history.chain_values import first_values

T = TypeVar("T", bound=Model)


class BadRecord(Exception):
    """This record can't be taken in; the message says why and what to do."""


class Outcome(StrEnum):
    ADDED = "added"
    KNOWN = "already here"


@dataclass(frozen=True)
class Checked:
    """A response that adds up, ready to be stored."""

    row: Response
    merged: list[tuple[Segment, bytes]]
    tools: list[ToolEvent]


@dataclass(frozen=True)
class Restore:
    """How records are taken in: for whom, in which transactions, and whether anything is stored."""

    owner: User | None = None  # None: the users that the records name
    is_rehearsal: bool = False
    open_transaction: Callable[[], AbstractContextManager[None]] = transaction.atomic
    rehearsed: set[str] = field(default_factory=set)  # would be here by now

    def take(self, record: Any) -> Outcome:
        kind = record.get("record") if isinstance(record, dict) else None
        takers: dict[Any, Callable[[Record], Outcome]] = {
            "response": self._response,
            "conversation": self._conversation,
        }
        if kind not in takers or record.get("format") != FORMAT:
            raise BadRecord(
                f"it is not a record of format {FORMAT}. Was it made by export_responses?"
            )
        try:
            return takers[kind](record)
        except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
            raise BadRecord(
                f"it lacks something, or holds something else than it should: {error!r}"
            ) from error

    @contextmanager
    def _storing(self) -> Iterator[None]:
        with self.open_transaction():
            yield
            if self.is_rehearsal:
                transaction.set_rollback(True)

    # -- responses ----------------------------------------------------------------------
    def _response(self, record: Record) -> Outcome:
        """Checked before the transaction begins: a server beside this waits until it ends."""
        checked = _check(record)
        outcome = self._known(checked.row, record)
        if outcome is None:
            with self._storing():
                outcome = self._known(checked.row, record) or self._add(checked, record)
        if self.is_rehearsal:
            self.rehearsed.add(checked.row.pk)
        return outcome

    def _known(self, row: Response, record: Record) -> Outcome | None:
        known = Response.objects.select_related("owner").filter(pk=row.pk).first()
        if known is None:
            return None
        if known.owner.get_username() != self._owner_name(record):
            raise BadRecord("its id belongs to another user's response here.")
        if known.deleted_at is None and (known.status, known.output) != (row.status, row.output):
            raise BadRecord("another response has its id here.")
        return Outcome.KNOWN

    def _add(self, checked: Checked, record: Record) -> Outcome:
        row = checked.row
        row.owner = self._owner(record)
        row.session = self._session(record["session"], row.owner)
        taken = Response.objects.filter(session=row.session, turn=row.turn).first()
        if taken is not None:
            raise BadRecord(
                f"turn {row.turn} of its session {row.session.public_id} is {taken.pk} here."
            )
        if record["conversation"] is not None:
            row.conversation = self._conversation_of(record["conversation"], row.session, row.owner)
        row.previous = Response.objects.filter(pk=record["previous"], owner=row.owner).first()
        if record["previous"] not in (None, *self.rehearsed) and row.previous is None:
            raise BadRecord(
                f"it continues {record['previous']}, which is not here. Import that first."
            )
        _store(checked, record)
        return Outcome.ADDED

    def _owner_name(self, record: Record) -> str:
        name: str = record["owner"] if self.owner is None else self.owner.get_username()
        return name

    def _owner(self, record: Record) -> User:
        if self.owner is not None:
            return self.owner
        owner, is_new = User.objects.get_or_create(username=record["owner"])
        if is_new:
            owner.set_unusable_password()
            owner.save()
        return owner

    def _session(self, told: Record, owner: User) -> Session:
        session = Session.objects.filter(owner=owner, public_id=told["public_id"]).first()
        if session is None:
            session = _built(Session, told, SESSION_LEFT_OUT)
            session.owner = owner
            session.parent = Session.objects.filter(owner=owner, public_id=told["parent"]).first()
            session.fork_point = Response.objects.filter(owner=owner, pk=told["fork_point"]).first()
            session.save(force_insert=True)
        return session

    # -- conversations ------------------------------------------------------------------
    def _conversation_of(self, told: Record, session: Session, owner: User) -> Conversation:
        conversation = Conversation.objects.filter(pk=told["id"]).first()
        if conversation is None:
            if (
                told["name"] is not None
                and Conversation.objects.filter(owner=owner, name=told["name"]).exists()
            ):
                raise BadRecord(
                    f"{owner} has another conversation named {told['name']!r} here. Rename or delete it."
                )
            conversation = _built(Conversation, {**told, "session": None}, {"session", "owner"})
            conversation.owner, conversation.session = owner, session
            conversation.save(force_insert=True)
        elif conversation.owner_id != owner.pk:
            raise BadRecord(f"{conversation.pk} belongs to somebody else here.")
        return conversation

    def _conversation(self, record: Record) -> Outcome:
        mine = Conversation.objects.filter(
            owner__username=self._owner_name(record), items__isnull=False
        )
        if mine.filter(pk=record["conversation"]["id"]).exists():
            return Outcome.KNOWN
        with self._storing():
            return self._add_conversation(record)

    def _add_conversation(self, record: Record) -> Outcome:
        owner = self._owner(record)
        conversation = self._conversation_of(
            record["conversation"], self._session(record["session"], owner), owner
        )
        here = ConversationItem.objects.filter(conversation=conversation)
        if here.exists():
            return Outcome.KNOWN
        named = {item["response_id"] for item in record["items"]} - {None}
        present = set(
            Response.objects.filter(pk__in=named, owner=owner).values_list("pk", flat=True)
        )
        rows = [
            item
            for item in record["items"]
            if item["response_id"] is None or item["response_id"] in present
        ]
        ConversationItem.objects.bulk_create(
            ConversationItem(conversation=conversation, **item) for item in rows
        )
        Conversation.objects.filter(pk=conversation.pk).update(context_tokens=None)
        return Outcome.ADDED


def _check(record: Record) -> Checked:
    row = _built(Response, record["response"], RESPONSE_LEFT_OUT)
    if row.status not in TERMINAL or row.finished_at is None:
        raise BadRecord("its response has not ended. Export it again when it has.")
    segments = _segments(row, record)
    if segments:
        end = up_to_end(segments)[-1]
        row.last_position, row.last_sequence = end.last_position, end.next_sequence - 1
    row.is_log_merged = not segments
    tools = [_built(ToolEvent, columns, TOOL_LEFT_OUT) for columns in record["tool_events"]]
    return Checked(row, merge(segments), tools)


def _store(checked: Checked, record: Record) -> None:
    row = checked.row
    _join_chain(row)
    row.save(force_insert=True)
    session = Session.objects.filter(pk=row.session_id)
    session.filter(turn_count__lt=row.turn).update(turn_count=row.turn)
    if row.waits_for_turn:
        session.update(has_server_history=True)
    InputItem.objects.bulk_create(
        InputItem(response=row, position=position, item=item)
        for position, item in enumerate(record["input_items"])
    )
    for tool in checked.tools:
        tool.response = row
    ToolEvent.objects.bulk_create(checked.tools)
    replace_with_merged(row.pk, checked.merged)


def _join_chain(row: Response) -> None:
    """Its context is counted when a turn that continues it needs the count."""
    if row.kind == Kind.COMPACTION or not row.is_stored:
        row.chain_root = row.pk
        return
    has_instructions = row.request.get("instructions") is not None
    resent = row.is_history_resent
    values = first_values(
        row.pk, row.previous, has_instructions=has_instructions, brings_history=resent
    )
    for name, value in values.items():
        setattr(row, name, value)


def _segments(row: Response, record: Record) -> list[Segment]:
    """The log as it was committed, after a look whether it tells the same as the row."""
    events: list[Event] = record["events"]
    if not row.is_stored or row.deleted_at is not None:
        if events:
            raise BadRecord("its content was deleted or never stored, and yet it has events.")
        return []
    numbers = [event["sequence_number"] for event in events if not is_internal(event)]
    if numbers != list(range(len(numbers))):
        raise BadRecord(
            "its events are not numbered 0, 1, 2, ...: the file was changed or is damaged."
        )
    body = fold(events)
    told = (
        body.get("id"),
        body.get("status"),
        body["output"],
        body.get("usage"),
        body.get("error"),
    )
    if told != (row.pk, row.status, row.output, row.usage, row.error):
        raise BadRecord(
            "its events do not add up to its output: the file was changed or is damaged."
        )
    return _committed(row, events, record["commits"])


def _committed(row: Response, events: list[Event], commits: list[list[int]]) -> list[Segment]:
    numbering = Numbering(row.pk, row.attempt)
    segments = []
    for last, at_ms in commits:
        part = events[numbering.next_position : last + 1]
        if part:
            segments.append(replace(numbering.seal(part), commit_marks=f"{last}:{at_ms}"))
    if numbering.next_position != len(events):
        raise BadRecord(
            "its commit times do not cover its events: the file was changed or is damaged."
        )
    return segments


def _built(model: type[T], told: Record, left_out: set[str]) -> T:
    """A row from its columns, each read as the field reads it."""
    fields = {
        field.name: field for field in model._meta.concrete_fields if field.name not in left_out
    }
    unknown = told.keys() - fields.keys() - left_out
    if unknown:
        raise ValueError(f"unknown columns {', '.join(sorted(unknown))}")
    return model(
        **{
            fields[name].attname: fields[name].to_python(value)
            for name, value in told.items()
            if name in fields
        }
    )
