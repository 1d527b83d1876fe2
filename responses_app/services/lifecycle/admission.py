"""What an API asks for and gets: the request in common terms, and the admitted response."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from responses_app.agent_profiles import FUNCTION_CALL, REPLACE
from responses_app.eventlog import Tail
from responses_app.models import ApprovalMode, Approver, Kind, TurnPolicy
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.items import Item
from responses_app.protocol.reasoning_items import RAW
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import OnDisconnect
from responses_app.services.idempotency import RequestIdentity


def _nothing(response_id: str) -> None:
    """Most APIs store nothing beside the response."""


def location(index: int, history_items: int) -> str:
    """Where an item is in a request that begins with so many items of history."""
    if index < history_items:
        return f"conversation_history[{index}]"
    return f"input[{index - history_items}]"


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A valid request, whichever API it came through."""

    owner_id: int
    model: str
    items: list[Item]
    requested_by: str = ""
    authority: Approver | None = None  # over the calls that its items decide about
    echo: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    kind: Kind = Kind.RESPONSES
    previous_id: str | None = None
    conversation: str | None = None
    session_id: str | None = None
    # The session of a turn that brings its history: the turn counts there and never waits.
    groups_with: str | None = None
    is_session_chosen: bool = False  # that session takes the turn, wherever its history comes from
    # The first items that are history in the body, instead of any other that the request names.
    history_items: int = 0
    history_ends: dict[str, int] = field(default_factory=dict)  # see possible_ends()
    turn_policy: TurnPolicy | None = None  # instead of the session's own
    session_key: str | None = None  # from X-Hermes-Session-Key
    retry_of: str | None = None  # the response that is tried again: the same history and session
    tool_items: str = FUNCTION_CALL
    client_tools: str = REPLACE
    may_wait_for_approval: bool = False  # also where the client can't be asked, or could be
    reasoning_form: str = RAW
    limits: ContextLimits = field(default_factory=ContextLimits)
    is_stored: bool = True
    is_background: bool = False
    stops_with_client: bool = False  # even if it is stored
    identity: RequestIdentity | None = None  # without one, it repeats no earlier request
    # Gets the id in the transaction of the admission, before the response is stored.
    before_storing: Callable[[str], None] = _nothing

    @property
    def brings_history(self) -> bool:
        return self.history_items > 0

    def location(self, index: int) -> str:
        """Where an item is in the request."""
        return location(index, self.history_items)

    @property
    def may_repeat_history(self) -> bool:
        names = (self.previous_id, self.conversation, self.session_id, self.retry_of)
        names_history = any(name is not None for name in names)
        return self.is_stored and (self.brings_history or not names_history)

    @property
    def approvals(self) -> ApprovalMode:
        """The events of runs and sessions ask the client; the output of a response can."""
        if self.may_wait_for_approval:
            return ApprovalMode.WAIT
        if self.kind is Kind.CHAT:
            return ApprovalMode.DENY
        if self.kind is Kind.RESPONSES:
            return ApprovalMode.REQUEST
        return ApprovalMode.WAIT

    @property
    def on_disconnect(self) -> OnDisconnect:
        if self.is_stored and not self.stops_with_client:
            return OnDisconnect.CONTINUE
        return OnDisconnect.CANCEL


@dataclass(frozen=True)
class Admitted:
    """A response that is stored, or that an earlier request with the same key has stored."""

    response_id: str
    session_id: str
    body: ResponseBody
    on_disconnect: OnDisconnect
    skipped_turns: tuple[str, ...]
    left_out: tuple[str, ...]  # of the conversation, as it does not fit
    interrupted: tuple[str, ...]
    tail: Tail
    reader: str  # the name of this request among the tail's clients
    is_replayed: bool = False  # an earlier request made it
