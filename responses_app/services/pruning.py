"""Pruning: find what may go, beside everything else, and remove it a few rows at a time."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from responses_app.models import Conversation, Response, Session
from responses_app.models.responses import ResponseQuerySet
from responses_app.services.retention import Selection, free

BATCH_ROWS = 20  # responses in one transaction: a stream waits that long for its own
PAGE_ROWS = 500  # looked at between two removals


class Walk:
    """A way along one column, oldest first; no row is passed twice, however many of them have to stay."""

    def __init__(self, rows: ResponseQuerySet, column: str) -> None:
        self._rows = rows
        self._column = column
        self._last: tuple[datetime, str] | None = None
        self.is_over = False

    def next_ends(self) -> list[str]:
        """Of the next page, those that may go and that nothing continues."""
        page = self._next_page()
        ends = free(Response.objects.filter(pk__in=page)).filter(~Exists(_children()))
        found = set(ends.values_list("pk", flat=True))
        return [pk for pk in page if pk in found]

    def _next_page(self) -> list[str]:
        rows = self._rows
        if self._last is not None:
            at, pk = self._last
            rows = rows.filter(~Q(**{self._column: at, "pk__lte": pk}), **{f"{self._column}__gte": at})
        page = list(rows.order_by(self._column, "pk").values_list(self._column, "pk")[:PAGE_ROWS])
        self.is_over = len(page) < PAGE_ROWS
        if page:
            self._last = page[-1]
        return [pk for _, pk in page]


class Search:
    """One pass over a selection; finding reads only, and removing needs a transaction."""

    def __init__(self, selection: Selection, batch_rows: int = BATCH_ROWS) -> None:
        self._rows = selection.rows()
        self._batch_rows = batch_rows
        self._walks = [Walk(selection.old(), "created_at"), Walk(selection.unused(), "accessed_at")]
        self._ends: list[str] = []

    @property
    def is_over(self) -> bool:
        return not self._ends and not self._walks

    def next_batch(self) -> list[str]:
        """What can go together: ends of chains and what they leave at the end; empty if this page has none."""
        if not self._ends and self._walks:
            self._ends = self._walks[0].next_ends()
            if self._walks[0].is_over:
                self._walks.pop(0)
        batch, self._ends = self._ends[: self._batch_rows], self._ends[self._batch_rows :]
        freed = self._freed_by(batch)
        while freed and len(batch) < self._batch_rows:
            room = self._batch_rows - len(batch)
            batch += freed[:room]
            freed = self._freed_by(batch)
        self._ends = freed + self._ends
        return batch

    def _freed_by(self, batch: list[str]) -> list[str]:
        """The turns before these, where nothing else continues them."""
        continued = Response.objects.filter(pk__in=batch, previous__isnull=False).exclude(previous__in=batch)
        parents = list(continued.values_list("previous_id", flat=True))
        others = _children().exclude(pk__in=batch)
        rows = free(self._rows.filter(pk__in=parents)).filter(~Exists(others))
        return list(rows.values_list("pk", flat=True)) if parents else []

    def remove(self, batch: Sequence[str]) -> int:
        """In the caller's transaction: a batch, but for what was continued, used or locked since it was found."""
        rows = free(self._rows.filter(pk__in=batch)).select_for_update(skip_locked=True, of=("self",))
        going: dict[str, str | None] = dict(rows.values_list("pk", "previous_id"))
        needed = _needed_now(going)
        while needed:
            before = going.pop(needed.pop(), None)
            if before is not None:
                needed.append(before)
        if going:
            _delete(list(going))
        return len(going)


def _children() -> ResponseQuerySet:
    return Response.objects.filter(previous=OuterRef("pk"))


def _needed_now(going: dict[str, str | None]) -> list[str]:
    """Asked after the lock: a turn or a fork that was stored just before it keeps what it goes on from."""
    later = Response.objects.filter(previous__in=list(going)).exclude(pk__in=list(going))
    forks = Session.objects.filter(fork_point__in=list(going), turn_count=0)
    points = [*later.values_list("previous_id", flat=True), *forks.values_list("fork_point_id", flat=True)]
    return [pk for pk in points if pk is not None]


def _delete(ids: list[str]) -> None:
    """With all they have; the cascade deletes by id and loads no row."""
    sessions = set(Response.objects.filter(pk__in=ids).values_list("session_id", flat=True))
    Response.objects.filter(pk__in=ids).only("pk").delete()
    idle = Session.objects.select_for_update(skip_locked=True).filter(pk__in=sessions)
    locked = list(idle.values_list("pk", flat=True))
    emptied = Session.objects.filter(
        ~Exists(Response.objects.filter(session=OuterRef("pk"))),
        ~Exists(Conversation.objects.filter(session=OuterRef("pk"))),
        pk__in=locked,
    )
    emptied.only("pk").delete()
