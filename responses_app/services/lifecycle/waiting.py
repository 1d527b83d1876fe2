"""What responses wait for that have not ended and that no process works on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from responses_app.models import Response, ToolEvent
from responses_app.protocol.status import OPEN

APPROVAL = "the approval of {tool}"
EARLIER_TURN = "turn {turn} of its session"
PARENT = "the response that it continues"
PROCESS = "a free process"


@dataclass(frozen=True)
class Wait:
    what: str
    response_id: str = ""  # the response that has to end first
    until: datetime | None = None  # when it ends as a denial


def read_waits(rows: Sequence[Response]) -> dict[str, Wait]:
    """With a fixed number of queries, and none where nothing waits."""
    waiting = [row for row in rows if row.status in OPEN and row.lease_until is None]
    if not waiting:
        return {}
    approvals = _approvals(waiting)
    earlier = _earlier_turns(waiting)
    parents = set(_open_parents(waiting))
    waits: dict[str, Wait] = {}
    for row in waiting:
        if row.pk in approvals:
            waits[row.pk] = approvals[row.pk]
        elif row.waits_for_turn and row.pk in earlier:
            waits[row.pk] = earlier[row.pk]
        elif row.waits_for_turn and row.previous_id in parents:
            waits[row.pk] = Wait(PARENT, str(row.previous_id))
        else:
            waits[row.pk] = Wait(PROCESS)
    return waits


def _approvals(waiting: list[Response]) -> dict[str, Wait]:
    """The call of each that waits longest."""
    parked = [row.pk for row in waiting if row.parked_until is not None]
    calls = ToolEvent.objects.undecided().filter(response_id__in=parked).order_by("-pk")
    waits: dict[str, Wait] = {}
    for response_id, tool, until in calls.values_list("response_id", "name", "expires_at"):
        waits[response_id] = Wait(APPROVAL.format(tool=tool), until=until)
    return waits


def _earlier_turns(waiting: list[Response]) -> dict[str, Wait]:
    """The open turn before each, which is the next to end."""
    sessions = {row.session_id for row in waiting if row.waits_for_turn}
    turns = Response.objects.open().filter(session_id__in=sessions).order_by("turn")
    found = list(turns.values_list("session_id", "turn", "pk"))
    waits: dict[str, Wait] = {}
    for row in waiting:
        for session_id, turn, pk in found:
            if session_id == row.session_id and turn < row.turn:
                waits[row.pk] = Wait(EARLIER_TURN.format(turn=turn), pk)
                break
    return waits


def _open_parents(waiting: list[Response]) -> list[str]:
    ids = [row.previous_id for row in waiting if row.previous_id is not None]
    return list(Response.objects.open().filter(pk__in=ids).values_list("pk", flat=True))
