"""Pruning: find what may go while the server runs, and remove it a few rows at a time."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from responses_app.models import Conversation, Response, ResponseQuerySet, Session
from responses_app.services.archive.retention import Selection, free

BATCH_ROWS = 20  # in one transaction: the writes of all streams wait for it
PAGE_ROWS = 500  # read between two removals


class Walk:
    """Reads the rows along one column, oldest first, and each row once."""

    def __init__(self, rows: ResponseQuerySet, column: str) -> None:
        self._rows = rows
        self._column = column
        self._last: tuple[datetime, str] | None = None
        self.is_over = False

    def next_ends(self) -> list[str]:
        """Of the next page, the rows that may go and that no turn continues."""
        page = self._next_page()
        ends = free(Response.objects.filter(pk__in=page)).filter(~Exists(_children()))
        found = set(ends.values_list("pk", flat=True))
        return [pk for pk in page if pk in found]

    def _next_page(self) -> list[str]:
        rows = self._rows
        if self._last is not None:
            at, pk = self._last
            is_passed = Q((self._column, at), pk__lte=pk)
            rows = rows.filter(~is_passed, (f"{self._column}__gte", at))
        page = list(rows.order_by(self._column, "pk").values_list(self._column, "pk")[:PAGE_ROWS])
        self.is_over = len(page) < PAGE_ROWS
        if page:
            self._last = page[-1]
        return [pk for _, pk in page]


class Search:
    """One pass over a selection. Finding only reads; removing needs a transaction."""

    def __init__(self, selection: Selection, batch_rows: int = BATCH_ROWS) -> None:
        self._rows = selection.rows()
        self._batch_rows = batch_rows
        self._walks: list[Walk] = []
        self._ends: list[str] = []
        if selection.rules.created_before is not None:
            self._walks.append(Walk(selection.old(), "created_at"))
        if selection.last_unused is not None:
            self._walks.append(Walk(selection.unused(), "accessed_at"))

    @property
    def is_over(self) -> bool:
        return not self._ends and not self._walks

    def next_batch(self) -> list[str]:
        """Ends of chains and the turns before them, which go together; empty if there are none."""
        if not self._ends and self._walks:
            self._ends = self._walks[0].next_ends()
            if self._walks[0].is_over:
                self._walks.pop(0)
        ends = self._ends[: self._batch_rows]
        self._ends = self._ends[self._batch_rows :]
        batch = ends + self._before(ends)
        going = _without_needed(free(self._rows.filter(pk__in=batch)))
        self._ends = self._freed_by(going) + self._ends
        return going

    def _before(self, ends: list[str]) -> list[str]:
        """As many turns before these as fit into the batch."""
        room = self._batch_rows - len(ends)
        if room <= 0:
            return []
        before: list[str] = []
        turns = Response.objects.filter(pk__in=ends, previous__isnull=False)
        for session_id, turn, previous_id in turns.values_list("session_id", "turn", "previous_id"):
            for pk in _ancestors(session_id, turn, previous_id, room):
                if pk not in before:
                    before.append(pk)
        return before[:room]

    def _freed_by(self, going: list[str]) -> list[str]:
        """The turns before these that no other turn continues: the next ends."""
        continued = Response.objects.filter(pk__in=going, previous__isnull=False).exclude(
            previous__in=going
        )
        parents = list(continued.values_list("previous_id", flat=True))
        if not parents:
            return []
        others = _children().exclude(pk__in=going)
        rows = free(self._rows.filter(pk__in=parents)).filter(~Exists(others))
        return list(rows.values_list("pk", flat=True))

    def remove(self, batch: Sequence[str]) -> int:
        """In the caller's transaction: a batch without rows that were continued or locked since."""
        rows = free(self._rows.filter(pk__in=batch)).select_for_update(
            skip_locked=True, of=("self",)
        )
        going = _without_needed(rows)
        if going:
            _delete(going)
        return len(going)


def _children() -> ResponseQuerySet:
    return Response.objects.filter(previous=OuterRef("pk"))


def _ancestors(session_id: int, turn: int, previous_id: str | None, limit: int) -> list[str]:
    """The turns before one, newest first, as far as they are among the last of its session."""
    earlier = Response.objects.filter(session_id=session_id, turn__lt=turn).order_by("-turn")
    links: dict[str, str | None] = dict(earlier.values_list("pk", "previous_id")[:limit])
    found: list[str] = []
    while previous_id in links:
        found.append(previous_id)
        previous_id = links[previous_id]
    return found


def _without_needed(rows: ResponseQuerySet) -> list[str]:
    """Of these, the rows that no turn or fork outside of them continues.

    The later turns are read after the rows: one that was stored meanwhile keeps what it continues,
    and all before that.
    """
    going: dict[str, str | None] = dict(rows.values_list("pk", "previous_id"))
    later = Response.objects.filter(previous__in=list(going)).exclude(pk__in=list(going))
    forks = Session.objects.filter(fork_point__in=list(going), turn_count=0)
    needed = list(later.values_list("previous_id", flat=True))
    needed += forks.values_list("fork_point_id", flat=True)
    for pk in needed:
        before: str | None = pk
        while before is not None:
            before = going.pop(before, None)
    return list(going)


def _delete(ids: list[str]) -> None:
    """With all their rows; the cascade deletes by id and loads none."""
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
