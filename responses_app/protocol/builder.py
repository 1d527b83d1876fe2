"""Builds the output of a response as events that strict stream helpers accept.

Each method appends to ``pending`` what must be stored together: an item and its first part
open in one step and close in one step, so that a cut never falls between them.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from responses_app.protocol import events
from responses_app.protocol.closing import closing_events, mcp_error
from responses_app.protocol.events import TOOL_CALLED, Event
from responses_app.protocol.ids import item_id
from responses_app.protocol.items import ARGUMENTS_DELTA_OF, ARGUMENTS_OF, COMPACTION, Item
from responses_app.protocol.snapshot import Snapshot
from responses_app.protocol.status import Status

INTERRUPTED = "Interrupted: whether this call took effect is not known. Check before you repeat it."
TERMINAL_EVENT = {
    Status.COMPLETED: events.COMPLETED,
    Status.FAILED: events.FAILED,
    Status.INCOMPLETE: events.INCOMPLETE,
    Status.CANCELLED: events.INCOMPLETE,  # OpenAI has no response.cancelled; the status tells
}


class OutputBuilder:
    def __init__(self, response_id: str, history: Iterable[Event]) -> None:
        self.response_id = response_id
        self.snapshot = Snapshot()
        self._calls: dict[str, int] = {}  # where the item of each call is
        self._written: set[int] = set()  # calls shown as one item whose tool is at work
        self._open: list[
            int
        ] = []  # by their events: an item of another kind may end with whatever status
        for event in history:
            self.note(event)
        self.pending: list[Event] = []
        self._phase: str | None = None

    @property
    def output(self) -> list[Item]:
        return self.snapshot.output()

    def note(self, event: Event) -> None:
        """An event that is stored already, or was built elsewhere."""
        self.snapshot.apply(event)
        if event["type"] == events.ITEM_ADDED:
            self._open.append(event["output_index"])
            if "call_id" in event["item"]:
                self._calls[event["item"]["call_id"]] = event["output_index"]
        elif event["type"] == events.ITEM_DONE:
            self._open.remove(event["output_index"])
        elif event["type"] == TOOL_CALLED and event["output_index"] is not None:
            self._calls[event["call_id"]] = event["output_index"]
            self._written.add(event["output_index"])

    def take(self) -> list[Event]:
        taken, self.pending = self.pending, []
        return taken

    def add(self, event: Event) -> None:
        """An internal event, between the others."""
        self._emit(event)

    # -- lifecycle ----------------------------------------------------------------------
    def start(self) -> None:
        self._emit(
            {
                "type": events.IN_PROGRESS,
                "response": {**self.snapshot.body(), "status": "in_progress"},
            }
        )

    def finish(
        self,
        status: Status,
        *,
        usage: dict[str, Any] | None = None,
        error: dict[str, str] | None = None,
        incomplete: dict[str, str] | None = None,
    ) -> None:
        self._close_where(
            lambda item: True, "completed" if status is Status.COMPLETED else "incomplete"
        )
        body = {
            **self.snapshot.body(),
            "status": str(status),
            "completed_at": int(time.time()) if status is Status.COMPLETED else None,
            "usage": usage,
            "error": error,
            "incomplete_details": incomplete,
        }
        self._emit({"type": TERMINAL_EVENT[status], "response": body})

    # -- content ------------------------------------------------------------------------
    def message_started(self, phase: str | None) -> None:
        """The next text is a message of its own, which opens with its first word."""
        self._close_where(lambda item: item["type"] in ("message", "reasoning"), "completed")
        self._phase = phase

    def text(self, delta: str, logprobs: Iterable[Item] = ()) -> None:
        index = self._reopen("output_text", self._open_message)
        told = {"delta": delta, "logprobs": list(logprobs)}
        self._emit(self._at(index, events.TEXT_DELTA, content_index=0, **told))

    def annotation(self, annotation: dict[str, Any]) -> None:
        index = self._reopen("output_text", self._open_message)
        known = len(self.snapshot.item(index)["content"][0]["annotations"])
        kind = events.ANNOTATION_ADDED
        self._emit(
            self._at(index, kind, content_index=0, annotation_index=known, annotation=annotation)
        )

    def refusal(self, delta: str) -> None:
        index = self._reopen("refusal", self._open_refusal)
        self._emit(self._at(index, events.REFUSAL_DELTA, content_index=0, delta=delta))

    def reasoning(self, delta: str) -> None:
        index = self._reopen("reasoning", self._open_reasoning)
        self._emit(self._at(index, events.SUMMARY_DELTA, summary_index=0, delta=delta))

    def seal_reasoning(self, encrypted_content: str) -> None:
        """Close a reasoning item with what only its upstream can read of it."""
        index = self._reopen("reasoning", self._add_reasoning)
        self._close_item(index, "completed", encrypted_content=encrypted_content)

    def call_started(self, call_id: str, name: str, kind: str = "function_call") -> None:
        self._close_where(lambda item: item["type"] in ("message", "reasoning"), "completed")
        self._add({"type": kind, "call_id": call_id, "name": name, ARGUMENTS_OF[kind]: ""})

    def mcp_call_started(self, call_id: str, server_label: str, name: str) -> None:
        """A call and its result as one item, which no client takes for a call of its own."""
        self._close_where(lambda item: item["type"] in ("message", "reasoning"), "completed")
        empty = {"arguments": "", "approval_request_id": None, "output": None, "error": None}
        self._calls[call_id] = index = self._add(
            {"type": "mcp_call", "server_label": server_label, "name": name, **empty}
        )
        self._emit(self._at(index, events.MCP_CALL_IN_PROGRESS))

    def call_arguments(self, call_id: str, delta: str) -> None:
        index = self._calls[call_id]
        self._emit(
            self._at(index, ARGUMENTS_DELTA_OF[self.snapshot.item(index)["type"]], delta=delta)
        )

    def call_finished(self, call_id: str, *, is_cut: bool = False) -> None:
        index = self._calls[call_id]
        if is_cut or self.snapshot.item(index)["type"] != "mcp_call":
            self._close_item(index, "incomplete" if is_cut else "completed")
        else:
            self._close_parts(index)
            self._written.add(index)

    def output_index_of(self, call_id: str) -> int | None:
        """Where a call is shown, if it is."""
        return self._calls.get(call_id)

    def tool_output(self, call_id: str, text: str, *, is_error: bool = False) -> None:
        place = self._calls.get(call_id)
        if place is not None and self.snapshot.item(place)["type"] == "mcp_call":
            told = {"error": mcp_error(text)} if is_error else {"output": text}
            self._close_item(place, "failed" if is_error else "completed", **told)
            return
        parts = [{"type": "input_text", "text": text}]
        index = self._add({"type": "function_call_output", "call_id": call_id, "output": parts})
        self._close_item(index, "completed")

    def opaque(self, item: Item) -> None:
        """An item of another kind, whole; its id becomes one of ours."""
        self.close("completed")
        index = self._add(
            {key: value for key, value in item.items() if key not in ("id", "status")}
        )
        self._close_item(index, str(item.get("status") or "completed"))

    def compaction_started(self, content: str) -> None:
        """The content stands for nothing; ``compacted`` puts what stands for the conversation in its place."""
        self.close("completed")
        index = self._add({"type": COMPACTION, "encrypted_content": content})
        self._emit(self._at(index, events.COMPACTING))

    def compacted(self, content: str) -> None:
        self._close_item(self._open[-1], "completed", encrypted_content=content)

    def close(self, status: str) -> None:
        """Close whatever is still being said, in order; what was sent stays as it is."""
        for index in [index for index in self._open if index not in self._written]:
            self._close_item(index, status)

    # -- the steps ----------------------------------------------------------------------
    def _emit(self, event: Event) -> None:
        self.note(event)
        self.pending.append(event)

    def _at(self, index: int, kind: str, **fields: Any) -> Event:
        item: str = self.snapshot.item(index)["id"]
        return {"type": kind, "item_id": item, "output_index": index, **fields}

    def _add(self, item: Item) -> int:
        index = self.snapshot.item_count
        identified = {
            "id": item_id(self.response_id, item["type"], index),
            **item,
            "status": "in_progress",
        }
        self._emit({"type": events.ITEM_ADDED, "output_index": index, "item": identified})
        return index

    def _reopen(self, kind: str, opener: Callable[[], int]) -> int:
        if self._open and _kind(self.snapshot.item(self._open[-1])) == kind:
            return self._open[-1]
        self.close("completed")
        return opener()

    def _open_message(self) -> int:
        return self._open_part(
            {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        )

    def _open_refusal(self) -> int:
        return self._open_part({"type": "refusal", "refusal": ""})

    def _open_part(self, part: Item) -> int:
        phase, self._phase = self._phase, None
        kept = {} if phase is None else {"phase": phase}
        index = self._add({"type": "message", "role": "assistant", "content": [], **kept})
        self._emit(self._at(index, events.PART_ADDED, content_index=0, part=part))
        return index

    def _open_reasoning(self) -> int:
        index = self._add_reasoning()
        part = {"type": "summary_text", "text": ""}
        self._emit(self._at(index, events.SUMMARY_PART_ADDED, summary_index=0, part=part))
        return index

    def _add_reasoning(self) -> int:
        return self._add({"type": "reasoning", "summary": []})

    def _close_where(self, wanted: Callable[[Item], bool], status: str) -> None:
        for index in [index for index in self._open if wanted(self.snapshot.item(index))]:
            self._close_item(index, status)

    def _close_parts(self, index: int) -> None:
        for event in closing_events(self.output[index]):
            self._emit(self._at(index, event.pop("type"), **event))

    def _close_item(self, index: int, status: str, **added: Any) -> None:
        if index not in self._written:
            self._close_parts(index)
        item = self.output[index]
        if item["type"] == "mcp_call":
            if status == "incomplete" and index in self._written:
                added = {"error": mcp_error(INTERRUPTED)}
            self._emit(
                self._at(
                    index,
                    events.MCP_CALL_COMPLETED if status == "completed" else events.MCP_CALL_FAILED,
                )
            )
        self._emit(
            {
                "type": events.ITEM_DONE,
                "output_index": index,
                "item": {**item, **added, "status": status},
            }
        )


def _kind(item: Item) -> str:
    """What grows in an item: a message holds text or a refusal, never both."""
    kind: str = (
        item["content"][0]["type"]
        if item["type"] == "message" and item["content"]
        else item["type"]
    )
    return kind
