"""Restores the records of an archive: each is checked, then stored once, with others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from responses_app.models import Conversation, ConversationItem, Response
from responses_app.services.archive.batch import Batch, open_conversation, open_session
from responses_app.services.archive.checking import (
    BadRecord,
    CheckedResponse,
    check_response,
    explained,
)
from responses_app.services.archive.records import FORMAT, Record


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
    owners: dict[str, User] = field(default_factory=dict)  # those that are known to be stored

    def restore(self, records: Sequence[Any]) -> list[Outcome | BadRecord]:
        """What became of each, in their order; those that follow each other are stored together."""
        outcomes: list[Outcome | BadRecord] = []
        for kind, group in groupby(records, _kind):
            if kind == "response":
                outcomes += self._restore_responses(list(group))
            else:
                outcomes += [self._restore_other(record) for record in group]
        return outcomes

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.open_transaction():
            yield
            if self.is_rehearsal:
                transaction.set_rollback(True)

    # -- responses ----------------------------------------------------------------------
    def _restore_responses(self, records: list[Record]) -> list[Outcome | BadRecord]:
        """Checked before the transaction begins: a server beside this waits until it ends."""
        outcomes: list[Outcome | BadRecord] = [Outcome.KNOWN] * len(records)
        checked: dict[int, CheckedResponse] = {}
        for index, record in enumerate(records):
            try:
                checked[index] = explained(check_response, record)
            except BadRecord as error:
                outcomes[index] = error
        self._leave_out_known(checked, records, outcomes)
        if checked:
            with self._transaction():
                self._leave_out_known(checked, records, outcomes)
                self._store(checked, records, outcomes)
        return outcomes

    def _leave_out_known(
        self,
        checked: dict[int, CheckedResponse],
        records: list[Record],
        outcomes: list[Outcome | BadRecord],
    ) -> None:
        ids = [one.row.pk for one in checked.values()]
        here = Response.objects.select_related("owner").in_bulk(ids)
        met: set[str] = set()
        for index, one in list(checked.items()):
            known = here.get(one.row.pk)
            if known is None and one.row.pk not in met:
                met.add(one.row.pk)
                continue
            del checked[index]  # it is here, or twice in the file
            if known is not None and (reason := self._difference(known, one.row, records[index])):
                outcomes[index] = BadRecord(reason)

    def _difference(self, known: Response, row: Response, record: Record) -> str:
        if known.owner.get_username() != self._owner_name(record):
            return "its id belongs to another user's response here."
        if known.deleted_at is None and (known.status, known.output) != (row.status, row.output):
            return "another response has its id here."
        return ""

    def _store(
        self,
        checked: dict[int, CheckedResponse],
        records: list[Record],
        outcomes: list[Outcome | BadRecord],
    ) -> None:
        batch = Batch(self.rehearsed)
        batch.read([records[index] for index in checked])
        for index, one in checked.items():
            record = records[index]
            try:
                owner = explained(self._owner, record)
                with transaction.atomic():
                    explained(batch.add, one, record, owner)
                outcomes[index] = Outcome.ADDED
            except BadRecord as error:
                outcomes[index] = error
        batch.store()
        if self.is_rehearsal:
            self.rehearsed.update(batch.ids)

    def _owner_name(self, record: Record) -> str:
        if self.owner is not None:
            return self.owner.get_username()
        name: str = record["owner"]
        return name

    def _owner(self, record: Record) -> User:
        if self.owner is not None:
            return self.owner
        name = record["owner"]
        owner = self.owners.get(name)
        if owner is None:
            owner, is_new = User.objects.get_or_create(username=name)
            if is_new:
                owner.set_unusable_password()
                owner.save()
            if not self.is_rehearsal:
                self.owners[name] = owner
        return owner

    # -- conversations ------------------------------------------------------------------
    def _restore_other(self, record: Any) -> Outcome | BadRecord:
        if _kind(record) != "conversation":
            return BadRecord(
                f"it is not a record of format {FORMAT}. Was it made by export_responses?"
            )
        try:
            return explained(self._restore_conversation, record)
        except BadRecord as error:
            return error

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
        session = open_session(record["session"], owner)
        conversation = open_conversation(record["conversation"], session, owner)
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


def _kind(record: Any) -> str | None:
    """None for what is no record of this format."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return None
    return record.get("record")
