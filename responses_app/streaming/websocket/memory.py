"""What one socket remembers of its turns, where nothing is stored."""

from dataclasses import dataclass, replace

from responses_app.protocol.items import Item
from responses_app.services.lifecycle.admission import Admission

REMEMBERED_TURNS = 32  # a client goes on from its last turn, or forks from one not far back


@dataclass(frozen=True)
class Turn:
    asked: Admission
    output: list[Item]

    def continued_by(self, admission: Admission) -> Admission:
        """The next turn brings this one along, behind whatever stored history this one had."""
        request = admission.request
        if request.get("instructions") is None:
            request = {**request, "instructions": self.asked.request.get("instructions")}
        return replace(
            admission,
            items=[*self.asked.items, *self.output, *admission.items],
            request=request,
            previous_id=self.asked.previous_id,
            conversation=self.asked.conversation,
        )


class SocketMemory:
    """The newest turns of one connection; gone with it."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}

    def keep(self, response_id: str, turn: Turn) -> None:
        self._turns[response_id] = turn
        while len(self._turns) > REMEMBERED_TURNS:
            del self._turns[next(iter(self._turns))]

    def evict(self, response_id: str | None) -> None:
        if response_id is not None:
            self._turns.pop(response_id, None)

    def continued(self, admission: Admission) -> Admission:
        turn = self._turns.get(admission.previous_id) if admission.previous_id is not None else None
        return admission if turn is None else turn.continued_by(admission)
