"""What passes between the agent loop and the tools."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from responses_app.protocol.token_estimate import tool_tokens

Approver = Literal["operator", "client"]  # decides about a call that waits for an approval
# Why these arguments need an approval, or "" when they do not.
AsksApproval = Callable[[dict[str, Any]], str]


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str
    together: int = 1  # how many calls of the round share the room for results
    number: int = 0  # among them


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool that has more to show than text."""

    text: str
    images: tuple[str, ...] = ()  # data URLs, for models that can see


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads of a call; a failure is a result too."""

    output: str
    is_error: bool = False
    images: tuple[str, ...] = ()


# -- notes ------------------------------------------------------------------------------
TODO, MEMORY = "todo", "memory"  # of this session, and of all sessions of its owner
ChangeNotes = Callable[[Sequence[str]], Sequence[str]]


class Notes(Protocol):
    """What models wrote down, by kind: TODO or MEMORY."""

    async def read(self, kind: str) -> Sequence[str]: ...

    async def change(self, kind: str, change: ChangeNotes) -> Sequence[str]:
        """Replace the notes by what ``change`` makes of them, in one step; returns the new ones."""


class NoNotes:
    """For calls whose response is not stored."""

    async def read(self, kind: str) -> Sequence[str]:
        raise ValueError("a response that is not stored has no notes")

    async def change(self, kind: str, change: ChangeNotes) -> Sequence[str]:
        raise ValueError("a response that is not stored can't write notes")


# -- tools ------------------------------------------------------------------------------
@dataclass(frozen=True)
class ToolContext:
    """Where a call runs, and where its output goes as it appears."""

    workspace: Path  # shared by every conversation of one owner and profile
    report: Callable[[str], None]  # takes a piece of output
    notes: Notes = field(default_factory=NoNotes)
    max_tokens: int = 16_000  # of a result; the rest of a longer one is left out of its middle


@dataclass(frozen=True)
class Tool:
    """Something the server can do for the model; one file each in ``tools/``."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], ToolContext], Awaitable[str | ToolOutput]]
    is_replay_safe: bool = False  # an interrupted call may simply run again
    is_read_only: bool = False  # it changes nothing, so that it may run beside other such calls
    asks_approval: AsksApproval | None = None
    approver: Approver = "operator"
    # False where the same arguments can do something else the next time: each call is decided anew.
    can_keep_consent: bool = True
    time_limit_secs: float = 300
    server_label: str = ""  # the MCP server it comes from
    # How to read the rest of a result that is too long: which tool, with which arguments.
    rest_hint: str = ""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """As the Responses API describes it."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }

    @cached_property
    def tokens(self) -> int:
        return tool_tokens(self.spec)


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The client is asked about a call, and answers in another turn."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """A call runs now; it may be one that its client was asked about."""

    call_id: str


ApprovalEvent = ApprovalRequested | ApprovalGiven


class Consent(Enum):
    """Whether a call may run now."""

    GIVEN = "given"  # or refused for good: then its result is the refusal
    AWAITED = "awaited"  # the turn waits for the decision
    REQUESTED = "requested"  # the turn ends with a request to the client, which answers in another


# None: the call waits for an approval.
RunTool = Callable[[ToolCall], Awaitable[ToolResult | None]]
AskConsent = Callable[[ToolCall], Awaitable[Consent]]
