"""What all turns of one WebSocket share: the headers of its handshake, and its unstored turns."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from responses_app.database import database
from responses_app.http.principals import Principal, authenticate
from responses_app.http.session_key import SESSION_KEY_HEADER, read_session_key
from responses_app.models import TurnPolicy
from responses_app.protocol.items import Item
from responses_app.requests.client_options import ClientOptions, read_client_options
from responses_app.requests.clients import read_reasoning_form
from responses_app.requests.headers import (
    SESSION_HEADER,
    TURN_POLICY_HEADER,
    read_session_id,
    read_turn_policy,
)
from responses_app.services.lifecycle.admission import Admission

REMEMBERED_TURNS = 32  # a client continues its last turn, or forks a recent one


@dataclass(frozen=True)
class Turn:
    admission: Admission
    output: list[Item]

    def continued_by(self, admission: Admission) -> Admission:
        """The next turn contains this one, after the stored history that this one continued."""
        earlier = self.admission
        history_items = 0
        if earlier.brings_history:
            history_items = len(earlier.items) + len(self.output)
        request = admission.request
        if request.get("instructions") is None:
            request = request | {"instructions": earlier.request.get("instructions")}
        return replace(
            admission,
            items=earlier.items + self.output + admission.items,
            history_items=history_items,
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
        if admission.brings_history:
            return replace(admission, previous_id=None)
        return self._turns[admission.previous_id].continued_by(admission)


@dataclass(frozen=True)
class Connection:
    authorization: str | None
    session_id: str | None
    session_key: str | None
    turn_policy: TurnPolicy | None
    options: ClientOptions
    reasoning_form: str
    memory: SocketMemory = field(default_factory=SocketMemory)

    @classmethod
    def from_handshake(cls, header: Callable[[str], str | None]) -> "Connection":
        return cls(
            authorization=header("authorization"),
            session_id=read_session_id(header(SESSION_HEADER)),
            session_key=read_session_key(header(SESSION_KEY_HEADER)),
            turn_policy=read_turn_policy(header(TURN_POLICY_HEADER)),
            options=read_client_options(header),
            reasoning_form=read_reasoning_form(header),
        )

    async def principal(self) -> Principal:
        """Checked for every turn: a key may be revoked while a socket is open."""
        return await database.look_up(authenticate, self.authorization)
