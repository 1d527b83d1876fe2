"""Builds the output of a response as events that strict stream helpers accept.

Each method appends to ``pending`` what must be stored together: an item and its first part
open in one step and close in one step, so that a cut never falls between them.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from responses_app import events
from responses_app.events import Event
from responses_app.fold import Item, Snapshot
from responses_app.ids import item_id
from responses_app.states import Status

_TERMINAL_EVENT = {
    Status.COMPLETED: events.COMPLETED,
    Status.FAILED: events.FAILED,
    Status.INCOMPLETE: events.INCOMPLETE,
    Status.CANCELLED: events.INCOMPLETE,  # OpenAI has no response.cancelled; the status tells
}


class OutputBuilder:
    def __init__(self, response_id: str, history: Iterable[Event]) -> None:
        self.response_id = response_id
        self.snapshot = Snapshot()
        for event in history:
            self.snapshot.apply(event)
        self.pending: list[Event] = []
        self._phase: str | None = None
        self._open = [index for index, item in enumerate(self.output) if item.get("status") == "in_progress"]

    @property
    def output(self) -> list[Item]:
        return self.snapshot.output()

    def take(self) -> list[Event]:
        taken, self.pending = self.pending, []
        return taken

    # -- lifecycle ----------------------------------------------------------------------
    def start(self) -> None:
        self._emit({"type": events.IN_PROGRESS, "response": {**self.snapshot.body(), "status": "in_progress"}})

    def finish(
        self,
        status: Status,
        *,
        usage: dict[str, Any] | None = None,
        error: dict[str, str] | None = None,
        incomplete_reason: str | None = None,
    ) -> None:
        self.close("completed" if status is Status.COMPLETED else "incomplete")
        body = {
            **self.snapshot.body(),
            "status": str(status),
            "completed_at": int(time.time()) if status is Status.COMPLETED else None,
            "usage": usage,
            "error": error,
            "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
        }
        self._emit({"type": _TERMINAL_EVENT[status], "response": body})

    # -- content ------------------------------------------------------------------------
    def message_started(self, phase: str | None) -> None:
        """The next text is a message of its own, which opens with its first word."""
        self._close_where(lambda item: item["type"] in ("message", "reasoning"), "completed")
        self._phase = phase

    def text(self, delta: str) -> None:
        index = self._reopen("output_text", self._open_message)
        self._emit(self._at(index, "response.output_text.delta", content_index=0, delta=delta, logprobs=[]))

    def refusal(self, delta: str) -> None:
        index = self._reopen("refusal", self._open_refusal)
        self._emit(self._at(index, "response.refusal.delta", content_index=0, delta=delta))

    def reasoning(self, delta: str) -> None:
        index = self._reopen("reasoning", self._open_reasoning)
        self._emit(self._at(index, "response.reasoning_summary_text.delta", summary_index=0, delta=delta))

    def seal_reasoning(self, encrypted_content: str) -> None:
        """Close a reasoning item with what only its upstream can read of it."""
        index = self._reopen("reasoning", self._open_reasoning)
        self._close_item(index, "completed", encrypted_content=encrypted_content)

    def call_started(self, call_id: str, name: str) -> None:
        self._close_where(lambda item: item["type"] in ("message", "reasoning"), "completed")
        self._add({"type": "function_call", "call_id": call_id, "name": name, "arguments": ""})

    def call_arguments(self, call_id: str, delta: str) -> None:
        index = self._call_index(call_id)
        self._emit(self._at(index, "response.function_call_arguments.delta", delta=delta))

    def call_finished(self, call_id: str, *, is_cut: bool = False) -> None:
        self._close_item(self._call_index(call_id), "incomplete" if is_cut else "completed")

    def tool_output(self, call_id: str, text: str) -> None:
        parts = [{"type": "input_text", "text": text}]
        index = self._add({"type": "function_call_output", "call_id": call_id, "output": parts})
        self._close_item(index, "completed")

    def opaque(self, item: Item) -> None:
        """An item of another kind, whole; its id becomes one of ours."""
        self.close("completed")
        index = self._add({key: value for key, value in item.items() if key not in ("id", "status")})
        self._close_item(index, str(item.get("status") or "completed"))

    def close(self, status: str) -> None:
        """Close whatever is open, in order; what was sent stays as it is."""
        self._close_where(lambda item: True, status)

    # -- the steps ----------------------------------------------------------------------
    def _emit(self, event: Event) -> None:
        self.snapshot.apply(event)
        self.pending.append(event)

    def _at(self, index: int, kind: str, **fields: Any) -> Event:
        item: str = self.snapshot.item(index)["id"]
        return {"type": kind, "item_id": item, "output_index": index, **fields}

    def _add(self, item: Item) -> int:
        index = self.snapshot.item_count
        identified = {"id": item_id(self.response_id, item["type"], index), **item, "status": "in_progress"}
        self._emit({"type": "response.output_item.added", "output_index": index, "item": identified})
        self._open.append(index)
        return index

    def _reopen(self, kind: str, opener: Callable[[], int]) -> int:
        if self._open and _kind(self.snapshot.item(self._open[-1])) == kind:
            return self._open[-1]
        self.close("completed")
        return opener()

    def _open_message(self) -> int:
        return self._open_part({"type": "output_text", "text": "", "annotations": [], "logprobs": []})

    def _open_refusal(self) -> int:
        return self._open_part({"type": "refusal", "refusal": ""})

    def _open_part(self, part: Item) -> int:
        phase, self._phase = self._phase, None
        kept = {} if phase is None else {"phase": phase}
        index = self._add({"type": "message", "role": "assistant", "content": [], **kept})
        self._emit(self._at(index, "response.content_part.added", content_index=0, part=part))
        return index

    def _open_reasoning(self) -> int:
        index = self._add({"type": "reasoning", "summary": []})
        part = {"type": "summary_text", "text": ""}
        self._emit(self._at(index, "response.reasoning_summary_part.added", summary_index=0, part=part))
        return index

    def _call_index(self, call_id: str) -> int:
        return next(index for index in self._open if self.snapshot.item(index).get("call_id") == call_id)

    def _close_where(self, wanted: Callable[[Item], bool], status: str) -> None:
        for index in [index for index in self._open if wanted(self.snapshot.item(index))]:
            self._close_item(index, status)

    def _close_item(self, index: int, status: str, **added: Any) -> None:
        item = self.output[index]
        for event in _PART_CLOSERS.get(item["type"], _no_parts)(item):
            self._emit(self._at(index, event.pop("type"), **event))
        self._open.remove(index)
        self._emit(
            {"type": "response.output_item.done", "output_index": index, "item": {**item, **added, "status": status}}
        )


def _kind(item: Item) -> str:
    """What grows in an item: a message holds text or a refusal, never both."""
    kind: str = item["content"][0]["type"] if item["type"] == "message" and item["content"] else item["type"]
    return kind


def _no_parts(item: Item) -> list[Event]:
    return []


def _message_closers(item: Item) -> list[Event]:
    closers: list[Event] = []
    for index, part in enumerate(item["content"]):
        if part["type"] == "refusal":
            done = {"type": "response.refusal.done", "content_index": index, "refusal": part["refusal"]}
        else:
            done = {"type": "response.output_text.done", "content_index": index, "text": part["text"], "logprobs": []}
        closers += [done, {"type": "response.content_part.done", "content_index": index, "part": dict(part)}]
    return closers


def _reasoning_closers(item: Item) -> list[Event]:
    closers: list[Event] = []
    for index, part in enumerate(item["summary"]):
        closers += [
            {"type": "response.reasoning_summary_text.done", "summary_index": index, "text": part["text"]},
            {"type": "response.reasoning_summary_part.done", "summary_index": index, "part": dict(part)},
        ]
    return closers


def _call_closers(item: Item) -> list[Event]:
    return [{"type": "response.function_call_arguments.done", "name": item["name"], "arguments": item["arguments"]}]


_PART_CLOSERS = {"message": _message_closers, "reasoning": _reasoning_closers, "function_call": _call_closers}
