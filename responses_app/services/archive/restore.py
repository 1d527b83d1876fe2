"""Restores the records of an archive: each is checked, then stored once, in one transaction."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from responses_app.eventlog import replace_with_merged
from responses_app.models import (
    Conversation,
    ConversationItem,
    InputItem,
    Kind,
    Response,
    Session,
    ToolEvent,
)
from responses_app.services.archive.checking import (
    BadRecord,
    CheckedResponse,
    build_row,
    check_response,
)
from responses_app.services.archive.records import FORMAT, SESSION_LEFT_OUT, Record
from responses_app.services.history.chain_values import position_in_chain


class Outcome(StrEnum):
    ADDED = "added"
    KNOWN = "already here"


@dataclass(frozen=True)
class Restore:
    """How records are restored: for which owner, in which transactions, and whether for real."""

    owner: User | None = None  # None: the users that the records name
    is_rehearsal: bool = False
    open_transaction: Callable[[], AbstractContextManager[None]] = transaction.atomic
    rehearsed: set[str] = field(default_factory=set)  # ids that a real run would have stored

    def restore(self, record: Any) -> Outcome:
        kind = record.get("record") if isinstance(record, dict) else None
        if kind not in ("response", "conversation") or record.get("format") != FORMAT:
            raise BadRecord(
                f"it is not a record of format {FORMAT}. Was it made by export_responses?"
            )
        try:
            if kind == "response":
                return self._restore_response(record)
            return self._restore_conversation(record)
        except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
            raise BadRecord(f"a field is missing or has a wrong value: {error!r}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.open_transaction():
            yield
            if self.is_rehearsal:
                transaction.set_rollback(True)

    # -- responses ----------------------------------------------------------------------
    def _restore_response(self, record: Record) -> Outcome:
        """Checked before the transaction begins: a server beside this waits until it ends."""
        checked = check_response(record)
        is_known = self._is_known(checked.row, record)
        if not is_known:
            with self._transaction():
                is_known = self._is_known(checked.row, record)
                if not is_known:
                    self._add_response(checked, record)
        if self.is_rehearsal:
            self.rehearsed.add(checked.row.pk)
        return Outcome.KNOWN if is_known else Outcome.ADDED

    def _is_known(self, row: Response, record: Record) -> bool:
        known = Response.objects.select_related("owner").filter(pk=row.pk).first()
        if known is None:
            return False
        if known.owner.get_username() != self._owner_name(record):
            raise BadRecord("its id belongs to another user's response here.")
        if known.deleted_at is None and (known.status, known.output) != (row.status, row.output):
            raise BadRecord("another response has its id here.")
        return True

    def _add_response(self, checked: CheckedResponse, record: Record) -> None:
        row = checked.row
        row.owner = self._owner(record)
        row.session = _session(record["session"], row.owner)
        taken = Response.objects.filter(session=row.session, turn=row.turn).first()
        if taken is not None:
            raise BadRecord(
                f"turn {row.turn} of its session {row.session.public_id} is {taken.pk} here."
            )
        if record["conversation"] is not None:
            row.conversation = _conversation(record["conversation"], row.session, row.owner)
        previous_id = record["previous"]
        row.previous = Response.objects.filter(pk=previous_id, owner=row.owner).first()
        is_missing = previous_id is not None and row.previous is None
        if is_missing and previous_id not in self.rehearsed:
            raise BadRecord(f"it continues {previous_id}, which is not here. Import that first.")
        _store(checked, record)

    def _owner_name(self, record: Record) -> str:
        if self.owner is not None:
            return self.owner.get_username()
        name: str = record["owner"]
        return name

    def _owner(self, record: Record) -> User:
        if self.owner is not None:
            return self.owner
        owner, is_new = User.objects.get_or_create(username=record["owner"])
        if is_new:
            owner.set_unusable_password()
            owner.save()
        return owner

    # -- conversations ------------------------------------------------------------------
    def _restore_conversation(self, record: Record) -> Outcome:
        with_items = Conversation.objects.filter(
            owner__username=self._owner_name(record), items__isnull=False
        )
        if with_items.filter(pk=record["conversation"]["id"]).exists():
            return Outcome.KNOWN
        with self._transaction():
            return self._add_conversation(record)

    def _add_conversation(self, record: Record) -> Outcome:
        owner = self._owner(record)
        session = _session(record["session"], owner)
        conversation = _conversation(record["conversation"], session, owner)
        if ConversationItem.objects.filter(conversation=conversation).exists():
            return Outcome.KNOWN
        named = {item["response_id"] for item in record["items"]}
        present = Response.objects.filter(pk__in=named - {None}, owner=owner)
        usable: set[str | None] = {None, *present.values_list("pk", flat=True)}
        rows = []
        for item in record["items"]:
            if item["response_id"] in usable:
                rows.append(ConversationItem(conversation=conversation, **item))
        ConversationItem.objects.bulk_create(rows)
        Conversation.objects.filter(pk=conversation.pk).update(context_tokens=None)
        return Outcome.ADDED


def _session(columns: Record, owner: User) -> Session:
    session = Session.objects.filter(owner=owner, public_id=columns["public_id"]).first()
    if session is None:
        session = build_row(Session, columns, SESSION_LEFT_OUT)
        session.owner = owner
        session.parent = Session.objects.filter(owner=owner, public_id=columns["parent"]).first()
        session.fork_point = Response.objects.filter(owner=owner, pk=columns["fork_point"]).first()
        session.save(force_insert=True)
    return session


def _conversation(columns: Record, session: Session, owner: User) -> Conversation:
    conversation = Conversation.objects.filter(pk=columns["id"]).first()
    if conversation is not None:
        if conversation.owner_id != owner.pk:
            raise BadRecord(f"{conversation.pk} belongs to another user here.")
        return conversation
    name = columns["name"]
    if name is not None and Conversation.objects.filter(owner=owner, name=name).exists():
        raise BadRecord(
            f"{owner} has another conversation named {name!r} here. Rename or delete it."
        )
    conversation = build_row(Conversation, columns, {"session", "owner"})
    conversation.owner = owner
    conversation.session = session
    conversation.save(force_insert=True)
    return conversation


def _store(checked: CheckedResponse, record: Record) -> None:
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
    values = position_in_chain(
        row.pk,
        row.previous,
        has_instructions=row.request.get("instructions") is not None,
        brings_history=row.is_history_resent,
    )
    for name, value in values.items():
        setattr(row, name, value)
