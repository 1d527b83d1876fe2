"""What passes between the agent loop and the tools."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Approver = Literal["operator", "client"]  # decides about a call that waits for an approval
# Why these arguments need an approval, or "" when they do not.
AsksApproval = Callable[[dict[str, Any]], str]


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads of a call; a failure is a result too."""

    output: str
    is_error: bool = False


@dataclass(frozen=True)
class ToolContext:
    """Where a call runs, and where its output goes as it appears."""

    workspace: Path  # shared by every conversation of one owner and profile
    report: Callable[[str], None]  # takes a piece of output
    max_tokens: int = 16_000  # of a result; the rest of a longer one is left out of its middle


@dataclass(frozen=True)
class Tool:
    """Something the server can do for the model; one file each in ``tools/``."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], ToolContext], Awaitable[str]]
    is_replay_safe: bool = False  # an interrupted call may simply run again
    asks_approval: AsksApproval | None = None
    approver: Approver = "operator"
    # False where the same arguments can do something else the next time: each call is decided anew.
    can_keep_consent: bool = True
    time_limit_secs: float = 300
    server_label: str = ""  # the MCP server it comes from
    # How to read the rest of a result that is too long: which tool, with which arguments.
    rest_hint: str = ""


# None: the call waits for an approval.
RunTool = Callable[[ToolCall], Awaitable[ToolResult | None]]
