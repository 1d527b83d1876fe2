"""Builds the output of a response as events that strict stream helpers accept.

Each method appends to ``pending`` what must be stored together: an item and its first part
open in one step and close in one step, so that a cut never falls between them.
"""

import time
from collections.abc import Iterable
from typing import Any

from responses_app.protocol import events, reasoning_items
from responses_app.protocol.closing import INTERRUPTED, closing_events, mcp_error
from responses_app.protocol.events import Event
from responses_app.protocol.ids import item_id
from responses_app.protocol.items import (
    ARGUMENTS_OF,
    COMPACTION,
    Annotation,
    ContentPart,
    Item,
    TokenLogprob,
    without_fields,
)
from responses_app.protocol.response_object import UsageBody
from responses_app.protocol.snapshot import Snapshot
from responses_app.protocol.status import Status


class OutputBuilder:
    def __init__(self, response_id: str, history: Iterable[Event]) -> None:
        self.response_id = response_id
        self.snapshot = Snapshot()
        self.pending: list[Event] = []
        self._calls: dict[str, int] = {}  # call id -> output index
        self._running: set[int] = set()  # mcp_call items whose arguments are whole
        # Kept from the events: the status of an item of another kind does not show its end.
        self._open: list[int] = []
        self._phase: str | None = None
        for event in history:
            self.note(event)

    @property
    def output(self) -> list[Item]:
        return self.snapshot.output()

    def note(self, event: Event) -> None:
        """Apply an event that is stored already, or was built elsewhere."""
        self.snapshot.apply(event)
        kind = event["type"]
        if kind == events.ITEM_ADDED:
            index = event["output_index"]
            self._open.append(index)
            if "call_id" in event["item"]:
                self._calls[event["item"]["call_id"]] = index
        elif kind == events.ITEM_DONE:
            self._open.remove(event["output_index"])
        elif kind == events.TOOL_CALLED:
            index = event["output_index"]
            if index is not None:
                self._calls[event["call_id"]] = index
                self._running.add(index)

    def take(self) -> list[Event]:
        taken = self.pending
        self.pending = []
        return taken

    def add(self, event: Event) -> None:
        """Apply an event and append it to ``pending``."""
        self.note(event)
        self.pending.append(event)

    # -- lifecycle ----------------------------------------------------------------------
    def start(self) -> None:
        body = self.snapshot.body()
        body["status"] = "in_progress"
        self.add({"type": events.IN_PROGRESS, "response": body})

    def finish(
        self,
        status: Status,
        *,
        usage: UsageBody | None = None,
        error: dict[str, str] | None = None,
        incomplete: dict[str, str] | None = None,
    ) -> None:
        is_completed = status is Status.COMPLETED
        item_status = "completed" if is_completed else "incomplete"
        for index in list(self._open):
            self._close_item(index, item_status)
        body = self.snapshot.body()
        body["status"] = str(status)
        body["completed_at"] = int(time.time()) if is_completed else None
        body["usage"] = usage
        body["error"] = error
        body["incomplete_details"] = incomplete
        self.add({"type": events.TERMINAL_EVENT_OF[status], "response": body})

    # -- content ------------------------------------------------------------------------
    def message_started(self, phase: str | None) -> None:
        """The next text is a message of its own, which opens with its first delta."""
        self._close_content()
        self._phase = phase

    def text(self, delta: str, logprobs: Iterable[TokenLogprob] = ()) -> None:
        index = self._message_of("output_text")
        self._add_at(
            index, events.TEXT_DELTA, content_index=0, delta=delta, logprobs=list(logprobs)
        )

    def annotation(self, annotation: Annotation) -> None:
        index = self._message_of("output_text")
        parts: Any = self.snapshot.item(index)["content"]
        self._add_at(
            index,
            events.ANNOTATION_ADDED,
            content_index=0,
            annotation_index=len(parts[0]["annotations"]),
            annotation=annotation,
        )

    def refusal(self, delta: str) -> None:
        index = self._message_of("refusal")
        self._add_at(index, events.REFUSAL_DELTA, content_index=0, delta=delta)

    def reasoning(self, delta: str, form: str = reasoning_items.RAW) -> None:
        index = self.last_open("reasoning")
        if index is None or reasoning_items.form_of(self.snapshot.item(index)) != form:
            self.close("completed")
            index = self._add_item(reasoning_items.empty_reasoning(form))
            self.add(reasoning_items.part_added(self.snapshot.item(index), index))
        self.add(reasoning_items.text_delta(self.snapshot.item(index), index, delta))

    def seal_reasoning(self, encrypted_content: str | None) -> None:
        """Close a reasoning item, with the form that only its upstream can read if clients get it."""
        index = self.last_open("reasoning")
        if index is None:
            self.close("completed")
            index = self._add_item({"type": "reasoning", "summary": []})
        self._close_item(index, "completed", encrypted_content=encrypted_content)

    def opaque(self, item: Item) -> None:
        """A whole item of another kind; without an id it gets one of ours."""
        self.close("completed")
        index = self._add_item(without_fields(item, "status"))
        self._close_item(index, str(item.get("status") or "completed"))

    def compaction_started(self, content: str) -> None:
        """Open a compaction item with an empty content, which ``compacted`` replaces."""
        self.close("completed")
        index = self._add_item({"type": COMPACTION, "encrypted_content": content})
        self._add_at(index, events.COMPACTING)

    def compacted(self, content: str) -> None:
        self._close_item(self._open[-1], "completed", encrypted_content=content)

    def close(self, status: str) -> None:
        """Close all open items but calls whose tools run, in order; what was sent stays."""
        for index in list(self._open):
            if index not in self._running:
                self._close_item(index, status)

    # -- tool calls ---------------------------------------------------------------------
    def call_started(self, call_id: str, name: str, kind: str = "function_call") -> None:
        self._close_content()
        call: Any = {"type": kind, "call_id": call_id, "name": name, ARGUMENTS_OF[kind]: ""}
        self._add_item(call)

    def mcp_call_started(
        self, call_id: str, server_label: str, name: str, request_id: str | None = None
    ) -> None:
        """A call and its result as one item; no client takes it for its own."""
        self._close_content()
        index = self._add_item(
            {
                "type": "mcp_call",
                "server_label": server_label,
                "name": name,
                "arguments": "",
                "approval_request_id": request_id,
                "output": None,
                "error": None,
            }
        )
        self._calls[call_id] = index
        self._add_at(index, events.MCP_CALL_IN_PROGRESS)

    def call_arguments(self, call_id: str, delta: str) -> None:
        index = self._calls[call_id]
        kind = self.snapshot.item(index)["type"]
        self._add_at(index, events.ARGUMENTS_DELTA_OF[kind], delta=delta)

    def call_finished(self, call_id: str, *, is_cut: bool = False) -> None:
        index = self._calls[call_id]
        if is_cut:
            self._close_item(index, "incomplete")
        elif self.snapshot.item(index)["type"] == "mcp_call":
            self._close_parts(index)
            self._running.add(index)
        else:
            self._close_item(index, "completed")

    def output_index_of(self, call_id: str) -> int | None:  # None: the output does not show it
        return self._calls.get(call_id)

    def tool_output(self, call_id: str, text: str, *, is_error: bool = False) -> None:
        index = self._calls.get(call_id)
        if index is None or self.snapshot.item(index)["type"] != "mcp_call":
            parts: list[ContentPart] = [{"type": "input_text", "text": text}]
            index = self._add_item(
                {"type": "function_call_output", "call_id": call_id, "output": parts}
            )
            self._close_item(index, "completed")
        elif is_error:
            self._close_item(index, "failed", error=mcp_error(text))
        else:
            self._close_item(index, "completed", output=text)

    # -- the steps ----------------------------------------------------------------------
    def _add_at(self, index: int, kind: str, **fields: Any) -> None:
        item = self.snapshot.item(index)
        event: Any = {"type": kind, "item_id": item["id"], "output_index": index, **fields}
        self.add(event)

    def _add_item(self, item: Item) -> int:
        index = self.snapshot.item_count
        identified: Item = {
            "id": item_id(self.response_id, item["type"], index),
            **item,
            "status": "in_progress",
        }
        self.add({"type": events.ITEM_ADDED, "output_index": index, "item": identified})
        return index

    def last_open(self, kind: str) -> int | None:
        """The output index of the last open item, if deltas of this kind extend it."""
        if not self._open:
            return None
        index = self._open[-1]
        item = self.snapshot.item(index)
        open_kind = item["type"]
        if open_kind == "message":
            parts: Any = item["content"]
            if parts:  # a message has one part: text or a refusal, never both
                open_kind = parts[0]["type"]
        if open_kind == kind:
            return index
        return None

    def _message_of(self, kind: str) -> int:
        """The output index of the open message with such a part; opens one if there is none."""
        index = self.last_open(kind)
        if index is not None:
            return index
        self.close("completed")
        message: Item = {"type": "message", "role": "assistant", "content": []}
        if self._phase is not None:
            message["phase"] = self._phase
            self._phase = None
        index = self._add_item(message)
        part: ContentPart = {"type": "refusal", "refusal": ""}
        if kind == "output_text":
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self._add_at(index, events.PART_ADDED, content_index=0, part=part)
        return index

    def _close_content(self) -> None:
        for index in list(self._open):
            if self.snapshot.item(index)["type"] in ("message", "reasoning"):
                self._close_item(index, "completed")

    def _close_parts(self, index: int) -> None:
        for event in closing_events(self.output[index], index):
            self.add(event)

    def _close_item(
        self,
        index: int,
        status: str,
        *,
        encrypted_content: str | None = None,
        output: str | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        if index not in self._running:
            self._close_parts(index)
        item = self.output[index].copy()
        if item["type"] == "mcp_call":
            is_done = status == "completed"
            self._add_at(index, events.MCP_CALL_COMPLETED if is_done else events.MCP_CALL_FAILED)
            if status == "incomplete" and index in self._running:
                error = mcp_error(INTERRUPTED)
        if encrypted_content is not None:
            item["encrypted_content"] = encrypted_content
        if output is not None:
            item["output"] = output
        if error is not None:
            item["error"] = error
        item["status"] = status
        self.add({"type": events.ITEM_DONE, "output_index": index, "item": item})
