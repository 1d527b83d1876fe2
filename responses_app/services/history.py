"""The turns that lead to a response, oldest first."""

from dataclasses import dataclass
from typing import Any

from responses_app.fold import Item
from responses_app.models import InputItem, Response

MAX_TURNS = 10_000  # a loop in the data must not become a loop in the server


@dataclass(frozen=True)
class Turn:
    response_id: str
    instructions: str | None
    input: list[Item]
    output: list[Item]


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
        Turn(row["pk"], row["request"].get("instructions"), inputs[row["pk"]], row["output"] or [])
        for row in reversed(rows)
    ]


def input_of(response_id: str) -> list[Item]:
    return list(InputItem.objects.filter(response_id=response_id).order_by("position").values_list("item", flat=True))


def sent_items(row: Response) -> list[Item]:
    """The input as the client sent it: what it repeated is stored with the turns it repeats."""
    own = input_of(row.pk)
    if not row.is_history_resent:
        return own
    repeated = [item for turn in turns_before(row.previous_id) for item in (*turn.input, *turn.output)]
    return repeated + own


def deleted_before(previous: Response | None) -> list[str]:
    """Turns of a chain that were deleted: the model goes on without them."""
    if previous is None:
        return []
    turns = Response.objects.filter(session_id=previous.session_id, is_stored=True)
    deleted = set(turns.filter(deleted_at__isnull=False).values_list("pk", flat=True))
    if not deleted:
        return []
    links = dict(turns.values_list("pk", "previous_id"))
    chain: list[str] = []
    at: str | None = previous.pk
    while at is not None and len(chain) < len(links):
        chain.append(at)
        at = links.get(at)
    return [turn for turn in chain if turn in deleted]


def effective_instructions(own: str | None, turns: list[Turn]) -> str | None:
    """The nearest instructions of the chain; an empty text clears those before it."""
    for instructions in [own, *(turn.instructions for turn in reversed(turns))]:
        if instructions is not None:
            return instructions or None
    return None


def _chain(previous_id: str | None) -> list[dict[str, Any]]:
    """All rows of the chain's session in one query, then the walk in memory."""
    session = Response.objects.filter(pk=previous_id).values("session_id")
    fields = ("pk", "previous_id", "request", "output", "deleted_at")
    known = {row["pk"]: row for row in Response.objects.filter(session_id__in=session).values(*fields)}
    rows: list[dict[str, Any]] = []
    while previous_id is not None and len(rows) < MAX_TURNS:
        row = known.get(previous_id) or Response.objects.values(*fields).get(pk=previous_id)
        if row["deleted_at"] is None:
            rows.append(row)
        previous_id = row["previous_id"]
    return rows
