"""Calls of the server's tools, as chat clients are told of them: one start and one end each."""

from typing import Any

import orjson

from gateway_app.runtime.recording import INTERNAL_TOOL_PREFIX
from responses_app.events import TOOL_CALLED, Event

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
_WRITTEN = ("response.function_call_arguments.done", "response.mcp_call_arguments.done")

Told = dict[str, Any]


class ToolProgress:
    """With detail, a call ends when its output is known, which may be a little later."""

    def __init__(self, *, is_detailed: bool) -> None:
        self._is_detailed = is_detailed
        self._arguments: dict[int, str] = {}  # by the place of the item
        self._called: dict[str, int | None] = {}  # call id -> place of its item
        self._running: dict[str, str] = {}  # call id -> name
        self._started: set[str] = set()  # a call that runs again after a crash has started already

    def note(self, event: Event) -> list[Told]:
        """What the event says of a call."""
        kind = event["type"]
        if kind in _WRITTEN:
            self._arguments[event["output_index"]] = event["arguments"]
        elif kind == TOOL_CALLED:
            self._called[event["call_id"]] = event["output_index"]
        elif kind == "hermes.tool.started":
            return self._start(event["call_id"], event["name"])
        elif kind == "hermes.tool.finished" and not self._is_detailed:
            return self._finish(event["call_id"], {})
        elif kind == "response.output_item.done" and self._is_detailed:
            return self._shown(event["output_index"], event["item"])
        return []

    def end(self) -> list[Told]:
        """Of calls whose end the log does not tell."""
        return [told for call_id in list(self._running) for told in self._finish(call_id, {})]

    def _start(self, call_id: str, name: str) -> list[Told]:
        if name.startswith(INTERNAL_TOOL_PREFIX) or call_id in self._started:
            return []
        self._started.add(call_id)
        self._running[call_id] = name
        emoji, label = EMOJI.get(name, OTHER_EMOJI), _label(name, self._input(call_id))
        told = {"tool": name, "emoji": emoji, "label": label, "toolCallId": call_id, "status": "running"}
        return [{**told, **({"input": self._input(call_id)} if self._is_detailed else {})}]

    def _finish(self, call_id: str, detail: Told) -> list[Told]:
        name = self._running.pop(call_id, None)
        if name is None:
            return []
        return [{"tool": name, "toolCallId": call_id, "status": "completed", **detail}]

    def _shown(self, place: int, item: dict[str, Any]) -> list[Told]:
        if item["type"] == "function_call_output":
            call_id, output = item["call_id"], "".join(part["text"] for part in item["output"])
        elif item["type"] == "mcp_call":
            call_id = next((made for made, at in self._called.items() if at == place), "")
            output = item["error"] or item["output"]
        else:
            return []
        return self._finish(call_id, {"input": self._input(call_id), "output": output})

    def _input(self, call_id: str) -> Any:
        """The arguments as JSON; what is none, as the model wrote it."""
        place = self._called.get(call_id)
        written = self._arguments.get(place, "") if place is not None else ""
        try:
            return orjson.loads(written)
        except orjson.JSONDecodeError:
            return written


def _label(name: str, given: Any) -> str:
    """A short preview: the first text among the arguments says most."""
    values = given.values() if isinstance(given, dict) else [given]
    text = " ".join(next((value for value in values if isinstance(value, str) and value.strip()), name).split())
    return text if len(text) <= MAX_LABEL_CHARS else text[: MAX_LABEL_CHARS - 1] + "…"
