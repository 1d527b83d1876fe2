"""Calls of server tools as chat clients see them: one start and one end each, and approvals."""

from dataclasses import dataclass
from typing import Any

from gateway_app.api.tool_calls import (
    ToolCall,
    ToolCallTracker,
    approval_request_fields,
    approval_response_fields,
    shortened,
)
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item, content_text

MAX_LABEL_CHARS = 60
# Between two frames while the model writes arguments. Not seconds: a replay gives the same frames.
FIRST_WRITTEN_CHARS = 64
WRITTEN_CHARS = 512
EMOJI = {
    "calculate": "🧮",
    "list_files": "📂",
    "patch": "🔧",
    "read_file": "📖",
    "search_files": "🔎",
    "terminal": "💻",
    "write_file": "✍️",
}
OTHER_EMOJI = "⚙️"

ARGUMENT_DELTAS = (events.ARGUMENTS_DELTA, events.MCP_ARGUMENTS_DELTA)

Progress = tuple[str, dict[str, Any]]  # the name of an event and its fields


@dataclass
class WrittenCall:
    """A call whose arguments the model is writing."""

    call_id: str
    name: str
    chars: int = 0
    next_frame_at: int = FIRST_WRITTEN_CHARS


class ToolProgress:
    """With detail, a call ends when its output is known, which may be a little later."""

    def __init__(self, *, is_detailed: bool) -> None:
        self._is_detailed = is_detailed
        self._calls = ToolCallTracker()
        self._running: dict[str, ToolCall] = {}
        self._written: dict[int, WrittenCall] = {}  # by output index
        self._announced: dict[str, str] = {}  # calls with frames, before they start: id -> tool

    def render(self, event: Event) -> list[Progress]:
        self._calls.record(event)
        kind = event["type"]
        if kind in ARGUMENT_DELTAS:
            return self._write(event)
        if kind == events.TOOL_NAMED:
            written = WrittenCall(event["call_id"], event["name"])
            self._written[event["output_index"]] = written
        if kind == events.TOOL_STARTED:
            return self._start(self._calls.started(event))
        if kind == events.TOOL_FINISHED and not self._is_detailed:
            return self._finish(event["call_id"], {})
        if kind == events.ITEM_DONE and self._is_detailed:
            return self._finish_with_output(event["output_index"], event["item"])
        if kind in (events.APPROVAL_REQUESTED, events.APPROVAL_RESOLVED):
            return self._approval(self._calls.call_of(event), event)
        return []

    def end(self) -> list[Progress]:
        """For calls whose end is not in the log."""
        progress: list[Progress] = []
        for call_id in list(self._running):
            progress += self._finish(call_id, {})
        for call_id, name in self._announced.items():  # cut off, denied or still waiting
            progress.append(_ended(name, call_id, {}))
        return progress

    def _write(self, event: Event) -> list[Progress]:
        """The status is "running": to chat frontends, any other one is the end of the call."""
        call = self._written.get(event["output_index"])
        if call is None:
            return []
        call.chars += len(event["delta"])
        if call.chars < call.next_frame_at:
            return []
        call.next_frame_at = call.chars + WRITTEN_CHARS
        self._announced[call.call_id] = call.name
        fields = {
            "tool": call.name,
            "emoji": EMOJI.get(call.name, OTHER_EMOJI),
            "label": f"{shortened(call.name, MAX_LABEL_CHARS)}: {call.chars} characters written",
            "toolCallId": call.call_id,
            "status": "running",
            "argumentChars": call.chars,
        }
        return [(events.CHAT_TOOL_PROGRESS, fields)]

    def _start(self, call: ToolCall | None) -> list[Progress]:
        if call is None:
            return []
        self._running[call.call_id] = call
        self._announced.pop(call.call_id, None)
        fields = {
            "tool": call.name,
            "emoji": EMOJI.get(call.name, OTHER_EMOJI),
            "label": _label(call),
            "toolCallId": call.call_id,
            "status": "running",
        }
        if self._is_detailed:
            fields["input"] = call.parsed
        return [(events.CHAT_TOOL_PROGRESS, fields)]

    def _finish(self, call_id: str, detail: dict[str, Any]) -> list[Progress]:
        call = self._running.pop(call_id, None)
        if call is None:
            return []
        return [_ended(call.name, call_id, detail)]

    def _finish_with_output(self, output_index: int, item: Item) -> list[Progress]:
        """The output of a call is in an item of its own, or in that of the call."""
        call: ToolCall | None = None
        if item["type"] == "function_call_output":
            call = self._running.get(item["call_id"])
            output = content_text(item["output"])
        elif item["type"] == "mcp_call":
            for running in self._running.values():
                if running.output_index == output_index:
                    call = running
            output = content_text(item["output"])
            if item["error"]:
                output = content_text(item["error"]["content"])
        if call is None:
            return []
        return self._finish(call.call_id, {"input": call.parsed, "output": output})

    def _approval(self, call: ToolCall | None, event: Event) -> list[Progress]:
        """Under ``approval``: its ``choices`` would otherwise hide those of the chunk."""
        if call is None:
            return []
        fields: dict[str, Any] = {"toolCallId": call.call_id}
        if event["type"] == events.APPROVAL_REQUESTED:
            fields["approval"] = approval_request_fields(call, event)
            return [(events.CHAT_APPROVAL_REQUEST, fields)]
        fields["approval"] = approval_response_fields(call, event)
        return [(events.CHAT_APPROVAL_RESPONDED, fields)]


def _ended(name: str, call_id: str, detail: dict[str, Any]) -> Progress:
    fields = {"tool": name, "toolCallId": call_id, "status": "completed"}
    return events.CHAT_TOOL_PROGRESS, fields | detail


def _label(call: ToolCall) -> str:
    """The first text among the arguments, else the tool's name."""
    given = call.parsed
    values = given.values() if isinstance(given, dict) else [given]
    for value in values:
        if isinstance(value, str) and value.strip():
            return shortened(value, MAX_LABEL_CHARS)
    return shortened(call.name, MAX_LABEL_CHARS)
