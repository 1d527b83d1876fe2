"""Tool calls as a log tells them: arguments first, then their start and their end."""

from dataclasses import dataclass
from typing import Any

import orjson

from gateway_app.runtime.recorder import INTERNAL_TOOL_PREFIX
from responses_app.models.tool_events import Approver, Decision, ToolStatus
from responses_app.protocol import events
from responses_app.protocol.events import TOOL_CALLED, Event

ARGUMENTS_DONE = (events.ARGUMENTS_DONE, events.MCP_ARGUMENTS_DONE)
PREVIEW_CHARS = 120
# What tells most about a call, where it has one of these.
TELLING = ("command", "path", "pattern", "query", "url", "expression")


@dataclass(frozen=True)
class Call:
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
        """One line that says what the call is about."""
        parsed = self.parsed
        told = (
            next((parsed[key] for key in TELLING if parsed.get(key)), None)
            if isinstance(parsed, dict)
            else None
        )
        line = " ".join(str(told or self.arguments).split())
        return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


class Calls:
    """Remembers what a reader of the log must know of the calls before."""

    def __init__(self) -> None:
        self._arguments: dict[int, str] = {}  # by output index, until the call is whole
        self._calls: dict[str, Call] = {}
        self._started: set[str] = set()

    def note(self, event: Event) -> None:
        if event["type"] in ARGUMENTS_DONE:
            self._arguments[event["output_index"]] = event["arguments"]
        elif event["type"] == TOOL_CALLED and event["output_index"] is not None:
            place = event["output_index"]
            arguments = self._arguments.pop(place, "")
            self._calls[event["call_id"]] = Call(event["call_id"], event["name"], arguments, place)

    def of(self, event: Event) -> Call | None:
        """The call an event is about; None for those that no client sees."""
        return (
            None
            if event["name"].startswith(INTERNAL_TOOL_PREFIX)
            else self._calls.get(event["call_id"])
        )

    def started(self, event: Event) -> Call | None:
        """Once for each call: after a crash, one that may be repeated starts again."""
        call = self.of(event)
        if call is None or call.call_id in self._started:
            return None
        self._started.add(call.call_id)
        return call

    def finished(self, event: Event) -> Call | None:
        """Of those that had started: one that was denied never did."""
        return self.of(event) if event["call_id"] in self._started else None


def is_failure(finished: Event) -> bool:
    return str(finished["status"]) != ToolStatus.COMPLETED


def approval_request(call: Call, event: Event) -> dict[str, Any]:
    """An event of an older log does not name the approver: all choices were the client's."""
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


def approval_answer(call: Call, event: Event) -> dict[str, Any]:
    """Silence counts as a denial."""
    is_expired = event["decision"] == "expired"
    choice = str(Decision.DENY) if is_expired else event["decision"]
    return {
        "request_id": call.call_id,
        "tool": call.name,
        "choice": choice,
        "resolved": 1,
        "expired": is_expired,
    }
