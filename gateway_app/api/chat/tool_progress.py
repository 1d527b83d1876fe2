"""Calls of the server's tools, as chat clients are told of them: one start and one end each, and who must consent."""

from typing import Any

from gateway_app.api.tool_calls import (
    Call,
    Calls,
    approval_answer,
    approval_request,
)
from responses_app.protocol import events
from responses_app.protocol.events import (
    APPROVAL_REQUESTED,
    APPROVAL_RESOLVED,
    TOOL_FINISHED,
    TOOL_STARTED,
    Event,
)
from responses_app.protocol.items import Item, content_text

MAX_LABEL_CHARS = 60
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

Told = tuple[str, dict[str, Any]]


class ToolProgress:
    """With detail, a call ends when its output is known, which may be a little later."""

    def __init__(self, *, is_detailed: bool) -> None:
        self._is_detailed = is_detailed
        self._calls = Calls()
        self._running: dict[str, Call] = {}

    def note(self, event: Event) -> list[Told]:
        """What the event says of a call."""
        self._calls.note(event)
        kind = event["type"]
        if kind == TOOL_STARTED:
            return self._start(self._calls.started(event))
        if kind == TOOL_FINISHED and not self._is_detailed:
            return self._finish(event["call_id"])
        if kind == events.ITEM_DONE and self._is_detailed:
            return self._shown(event["output_index"], event["item"])
        if kind in (APPROVAL_REQUESTED, APPROVAL_RESOLVED):
            return self._consent(self._calls.of(event), event)
        return []

    def end(self) -> list[Told]:
        """Of calls whose end the log does not tell."""
        return [told for call_id in list(self._running) for told in self._finish(call_id)]

    def _start(self, call: Call | None) -> list[Told]:
        if call is None:
            return []
        self._running[call.call_id] = call
        named = {
            "tool": call.name,
            "emoji": EMOJI.get(call.name, OTHER_EMOJI),
            "label": _label(call),
        }
        detail = {"input": call.parsed} if self._is_detailed else {}
        return [
            (
                events.CHAT_TOOL_PROGRESS,
                {**named, "toolCallId": call.call_id, "status": "running", **detail},
            )
        ]

    def _finish(self, call_id: str, **detail: Any) -> list[Told]:
        call = self._running.pop(call_id, None)
        if call is None:
            return []
        return [
            (
                events.CHAT_TOOL_PROGRESS,
                {"tool": call.name, "toolCallId": call_id, "status": "completed", **detail},
            )
        ]

    def _shown(self, place: int, item: Item) -> list[Told]:
        """The output of a call, in an item of its own or in that of the call."""
        if item["type"] == "function_call_output":
            call = self._running.get(item["call_id"])
            output = content_text(item["output"])
        elif item["type"] == "mcp_call":
            call = next(
                (call for call in self._running.values() if call.output_index == place), None
            )
            output = content_text(item["error"]["content"] if item["error"] else item["output"])
        else:
            return []
        if call is None:
            return []
        return self._finish(call.call_id, input=call.parsed, output=output)

    def _consent(self, call: Call | None, event: Event) -> list[Told]:
        """Inside of ``approval``: a request has choices, and so has a chunk."""
        if call is None:
            return []
        if event["type"] == APPROVAL_REQUESTED:
            return [
                (
                    events.CHAT_APPROVAL_REQUEST,
                    {"toolCallId": call.call_id, "approval": approval_request(call, event)},
                )
            ]
        return [
            (
                events.CHAT_APPROVAL_RESPONDED,
                {"toolCallId": call.call_id, "approval": approval_answer(call, event)},
            )
        ]


def _label(call: Call) -> str:
    """A short preview: the first text among the arguments says most."""
    given = call.parsed
    values = given.values() if isinstance(given, dict) else [given]
    text = " ".join(
        next(
            (value for value in values if isinstance(value, str) and value.strip()), call.name
        ).split()
    )
    return text if len(text) <= MAX_LABEL_CHARS else text[: MAX_LABEL_CHARS - 1] + "…"
