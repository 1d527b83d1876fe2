"""The unstored turns of one WebSocket, which a later turn on it may continue."""

from dataclasses import dataclass, replace

from responses_app.protocol.items import Item
from responses_app.services.lifecycle.admission import Admission

REMEMBERED_TURNS = 32  # a client continues its last turn, or forks a recent one


@dataclass(frozen=True)
class Turn:
    admission: Admission
    output: list[Item]

    def continued_by(self, admission: Admission) -> Admission:
        """The next turn contains this one, after the stored history that this one continued."""
        earlier = self.admission
        request = admission.request
        if request.get("instructions") is None:
            request = request | {"instructions": earlier.request.get("instructions")}
        return replace(
            admission,
            items=earlier.items + self.output + admission.items,
            request=request,
            previous_id=earlier.previous_id,
            conversation=earlier.conversation,
        )


class SocketMemory:
    """The newest turns of one connection; they end with it."""

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
        if admission.previous_id is None or admission.previous_id not in self._turns:
            return admission
        return self._turns[admission.previous_id].continued_by(admission)
