"""Branches: the turn that each turn continues, and whether another one continued it before."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Min

from responses_app.models import Response


@dataclass(frozen=True)
class Parent:
    """The turn that another one continues."""

    id: str
    turn: int
    is_in_session: bool  # a fork continues a turn of another session
    is_branched: bool  # an earlier turn of the session continues it too


def read_parents(rows: Sequence[Response]) -> dict[str, Parent]:
    """By the id of the turn that continues it, with two queries; absent where there is none."""
    parent_ids = {row.previous_id for row in rows if row.previous_id is not None}
    if not parent_ids:
        return {}
    parents = Response.objects.only("pk", "turn", "session_id").in_bulk(parent_ids)
    firsts = _first_children(rows, parent_ids)
    found = {}
    for row in rows:
        parent = parents.get(row.previous_id or "")
        if parent is None:
            continue
        first = firsts.get((parent.pk, row.session_id), row.turn)
        is_in_session = parent.session_id == row.session_id
        found[row.pk] = Parent(parent.pk, parent.turn, is_in_session, first < row.turn)
    return found


def _first_children(
    rows: Sequence[Response], parent_ids: set[str]
) -> dict[tuple[str | None, int], int]:
    """The number of the first turn in each session that continues each of the parents."""
    sessions = {row.session_id for row in rows}
    children = Response.objects.filter(previous_id__in=parent_ids, session_id__in=sessions)
    counted = children.order_by().values_list("previous_id", "session_id")
    firsts = {}
    for parent_id, session_id, first in counted.annotate(first=Min("turn")):
        firsts[parent_id, session_id] = first
    return firsts
