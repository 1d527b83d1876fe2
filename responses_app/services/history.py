"""The turns that lead to a response, oldest first."""

from dataclasses import dataclass
from typing import Any

from responses_app.fold import Item
from responses_app.models import InputItem, Response
from responses_app.services.context_hash import spoken

MAX_TURNS = 10_000  # a loop in the data must not become a loop in the server


@dataclass(frozen=True)
class Turn:
    response_id: str
    instructions: str | None
    input: list[Item]
    output: list[Item]
    brings_history: bool = False


def turns_before(previous_id: str | None) -> list[Turn]:
    """Walk the chain back from ``previous_id``; deleted turns are left out."""
    if previous_id is None:
        return []
    rows = _chain(previous_id)
    inputs: dict[str, list[Item]] = {row["pk"]: [] for row in rows}
    stored = InputItem.objects.filter(response_id__in=inputs).order_by("response_id", "position")
    for response_id, item in stored.values_list("response_id", "item"):
        inputs[response_id].append(item)
    return [
        Turn(
            row["pk"],
            row["request"].get("instructions"),
            inputs[row["pk"]],
            row["output"] or [],
            row["is_history_resent"],
        )
        for row in reversed(rows)
        if row["deleted_at"] is None
    ]


def input_of(response_id: str) -> list[Item]:
    return list(InputItem.objects.filter(response_id=response_id).order_by("position").values_list("item", flat=True))


def sent_items(row: Response) -> list[Item]:
    """The input as the client sent it: what it repeated is stored with the turns it repeats."""
    own = input_of(row.pk)
    if not row.is_history_resent:
        return own
    heard = spoken if row.is_history_spoken else list
    turns = turns_before(row.previous_id)
    return [*(item for turn in turns for item in (*turn.input, *heard(turn.output))), *own]


def deleted_before(previous: Response | None) -> list[str]:
    """Turns of a chain that were deleted: the model goes on without them."""
    if previous is None:
        return []
    return [row["pk"] for row in _walk(previous.pk, ("pk", "previous_id", "deleted_at")) if row["deleted_at"]]


def effective_instructions(own: str | None, turns: list[Turn]) -> str | None:
    """The nearest instructions of the chain; an empty text clears those before it.

    Who brings the history brings the instructions too: nothing before such a turn counts.
    """
    if own is not None:
        return own or None
    for turn in reversed(turns):
        if turn.instructions is not None:
            return turn.instructions or None
        if turn.brings_history:
            return None
    return None


def _chain(previous_id: str) -> list[dict[str, Any]]:
    return _walk(previous_id, ("pk", "previous_id", "request", "output", "deleted_at", "is_history_resent"))


def _walk(start: str, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of a chain, newest first; one query for each session it passes through."""
    known: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    at: str | None = start
    while at is not None and len(rows) < MAX_TURNS:
        if at not in known:
            session = Response.objects.filter(pk=at).values("session_id")
            known |= {row["pk"]: row for row in Response.objects.filter(session_id__in=session).values(*fields)}
        if at not in known:
            break
        rows.append(known[at])
        at = known[at]["previous_id"]
    return rows
