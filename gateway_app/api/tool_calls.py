"""The calls of server tools, collected from the log: arguments first, then start and end."""

from dataclasses import dataclass
from typing import Any

import orjson

from gateway_app.runtime.unseen_calls import INTERNAL_TOOL_PREFIX
from responses_app.models import Approver, Decision, ToolStatus
from responses_app.protocol import events
from responses_app.protocol.events import Event

ARGUMENTS_DONE = (events.ARGUMENTS_DONE, events.MCP_ARGUMENTS_DONE)
PREVIEW_CHARS = 120
# The arguments that describe a call best, in this order.
PREVIEW_ARGUMENTS = ("command", "path", "pattern", "query", "url", "expression")


@dataclass(frozen=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str
    output_index: int

    @property
    def parsed(self) -> Any:
        try:
            return orjson.loads(self.arguments or "{}")
        except orjson.JSONDecodeError:
            return self.arguments

    @property
    def preview(self) -> str:
        """One line that describes the call."""
        described: Any = self.arguments
        parsed = self.parsed
        if isinstance(parsed, dict):
            for name in PREVIEW_ARGUMENTS:
                if parsed.get(name):
                    described = parsed[name]
                    break
        return shortened(described, PREVIEW_CHARS)


def shortened(value: Any, max_chars: int) -> str:
    line = " ".join(str(value).split())
    if len(line) <= max_chars:
        return line
    return line[: max_chars - 1] + "…"


class ToolCallTracker:
    """What a reader of the log must keep of earlier events to describe a call."""

    def __init__(self) -> None:
        self._arguments: dict[int, str] = {}  # by output index, until the call is complete
        self._calls: dict[str, ToolCall] = {}
        self._started: set[str] = set()

    def record(self, event: Event) -> None:
        kind = event["type"]
        if kind in ARGUMENTS_DONE:
            self._arguments[event["output_index"]] = event["arguments"]
        elif kind == events.TOOL_CALLED and event["output_index"] is not None:
            index = event["output_index"]
            call_id = event["call_id"]
            arguments = self._arguments.pop(index, "")
            self._calls[call_id] = ToolCall(call_id, event["name"], arguments, index)

    def call_of(self, event: Event) -> ToolCall | None:
        """The call of an event; None for a call that clients do not see."""
        if event["name"].startswith(INTERNAL_TOOL_PREFIX):
            return None
        return self._calls.get(event["call_id"])

    def started(self, event: Event) -> ToolCall | None:
        """Once for each call: after a crash, a call that may be repeated starts again."""
        call = self.call_of(event)
        if call is None or call.call_id in self._started:
            return None
        self._started.add(call.call_id)
        return call

    def finished(self, event: Event) -> ToolCall | None:
        """Only a call that has started; a denied one never does."""
        if event["call_id"] not in self._started:
            return None
        return self.call_of(event)


def is_failure(finished: Event) -> bool:
    return str(finished["status"]) != ToolStatus.COMPLETED


def approval_request_fields(call: ToolCall, event: Event) -> dict[str, Any]:
    """An event of an older log names no approver: there, all choices were the client's."""
    return {
        "request_id": call.call_id,
        "tool": call.name,
        "command": call.preview,
        "arguments": call.arguments,
        "description": event["reason"],
        "expires_at": event["expires_at"],
        "approver": event.get("approver", str(Approver.CLIENT)),
        "choices": event.get("client_choices", list(Decision.values)),
    }


def approval_response_fields(call: ToolCall, event: Event) -> dict[str, Any]:
    """A request that expires counts as denied."""
    is_expired = event["decision"] == "expired"
    return {
        "request_id": call.call_id,
        "tool": call.name,
        "choice": str(Decision.DENY) if is_expired else event["decision"],
        "resolved": 1,
        "expired": is_expired,
    }
