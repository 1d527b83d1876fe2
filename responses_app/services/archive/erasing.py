"""Erases everything of one owner, a few rows at a time. Each step can be repeated after a kill."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from responses_app.models import (
    ApiKey,
    ApprovalGrant,
    Conversation,
    ConversationItem,
    EventSegment,
    IdempotencyKey,
    InboxMessage,
    InputItem,
    Note,
    OutboxMessage,
    PlatformChat,
    Response,
    SearchEntry,
    Session,
    ToolEvent,
    is_held,
)
from responses_app.services.workspaces import count_files, host_elsewhere, workspaces_of

BATCH_ROWS = 20  # in one transaction: the writes of all streams wait for it
CANCELLED_BY = "erase_owner"

Begin = Callable[[], AbstractContextManager[None]]


class OwnerErasure:
    """What an owner has, and how it goes. Counts are by the plural names of the models."""

    def __init__(self, owner: User, begin: Begin) -> None:
        self.owner = owner
        self._begin = begin
        self.erased: Counter[str] = Counter()

    def count(self) -> dict[str, int]:
        """How much there is of everything."""
        counts = {_plural(rows): rows.count() for rows in self._all()}
        counts["files"] = count_files(workspaces_of(self.owner.pk))
        return counts

    def files_elsewhere(self) -> list[dict[str, str]]:
        """The hosts whose files this process can't erase, each with the command to run there."""
        host = host_elsewhere(self.owner.pk)
        if not host:
            return []
        return [{"host": host, "run": f'rm -r "$HERMES_HOME/workspaces/{self.owner.pk}"'}]

    # -- in this order ------------------------------------------------------------------
    def stop(self) -> None:
        """No key of the owner works any more, and what runs is cancelled."""
        with self._begin():
            ApiKey.objects.filter(owner=self.owner).revoke()
            for pk in self._open().values_list("pk", flat=True):
                Response.objects.request_cancel(pk, CANCELLED_BY)

    def running(self) -> int:
        """Responses that a process still works on."""
        return self._open().filter(is_held()).count()

    def erase_rows(self) -> Iterator[int]:
        """Yields the number of responses that each step erased."""
        for rows in self._in_order():
            while ids := list(rows.values_list("pk", flat=True)[:BATCH_ROWS]):
                with self._begin():
                    self._delete(rows.model._default_manager.filter(pk__in=ids))
                yield len(ids) if rows.model is Response else 0

    def erase_files(self) -> None:
        folder = workspaces_of(self.owner.pk)
        self.erased["files"] += count_files(folder)
        if folder.exists():
            shutil.rmtree(folder)

    def erase_user(self) -> bool:
        """False for staff: they log in with it."""
        if self.owner.is_staff or self.owner.is_superuser:
            return False
        with self._begin():
            self.owner.delete()
        return True

    # -- rows ---------------------------------------------------------------------------
    def _open(self) -> QuerySet[Response]:
        return Response.objects.open().filter(owner=self.owner)

    def _in_order(self) -> list[QuerySet[Any]]:
        """Messages and chats name their responses and sessions only as long as those exist."""
        of_owner = Q(response__owner=self.owner) | Q(chat__session__owner=self.owner)
        return [
            OutboxMessage.objects.filter(of_owner),
            InboxMessage.objects.filter(of_owner),
            PlatformChat.objects.filter(session__owner=self.owner),
            Conversation.objects.filter(owner=self.owner),
            ApprovalGrant.objects.filter(owner=self.owner),
            Response.objects.filter(owner=self.owner),
            IdempotencyKey.objects.filter(owner=self.owner),
            Note.objects.filter(owner=self.owner),
            Session.objects.filter(owner=self.owner),
            ApiKey.objects.filter(owner=self.owner),
        ]

    def _all(self) -> list[QuerySet[Any]]:
        """With the rows that go with others."""
        return [
            *self._in_order(),
            EventSegment.objects.filter(response__owner=self.owner),
            InputItem.objects.filter(response__owner=self.owner),
            ToolEvent.objects.filter(response__owner=self.owner),
            SearchEntry.objects.filter(response__owner=self.owner),
            ConversationItem.objects.filter(conversation__owner=self.owner),
        ]

    def _delete(self, rows: QuerySet[Any]) -> None:
        """The cascade deletes by id and loads none."""
        _, by_label = rows.only("pk").delete()
        names = {found.model._meta.label: _plural(found) for found in self._all()}
        for label, count in by_label.items():
            if label in names:
                self.erased[names[label]] += count


def _plural(rows: QuerySet[Any]) -> str:
    return str(rows.model._meta.verbose_name_plural).lower().replace(" ", "_")
