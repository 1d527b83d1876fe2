"""Turns the events of the agent into the output of the response."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gateway_app.agent import events as types
from gateway_app.agent.context import OWN_LABEL
from gateway_app.agent.events import AgentEvent
from gateway_app.agent.tools import Tool
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import (
    CONTEXT_COMPACTED,
    CONTEXT_TRUNCATED,
    ITEM_STATE,
    MODEL_FINISHED,
    MODEL_STARTED,
    PROTOCOL_DEVIATION,
    TOOL_CALLED,
    UPSTREAM_ABANDONED,
    UPSTREAM_POSITION,
    Event,
)
from responses_app.protocol.items import CompactedContext
from responses_app.protocol.reasoning_items import RAW, SUMMARY

INTERNAL_TOOL_PREFIX = "_"

Seal = Callable[[CompactedContext], str]


class Recorder:
    """Records each call in its form: the client's, the server's, or hidden from the client."""

    def __init__(
        self,
        builder: OutputBuilder,
        tools: Mapping[str, Tool],
        client_names: set[str],
        form: str,
        seal: Seal,
        hidden: Iterable[str] = (),
        *,
        reasoning_form: str = RAW,
        shows_encrypted: bool = False,
    ) -> None:
        self._builder = builder
        self._tools = tools
        self._client_names = client_names
        self._form = form
        self._seal = seal
        self._reasoning_form = reasoning_form
        self._shows_encrypted = shows_encrypted  # the client asked for encrypted reasoning
        self._served: dict[str, str] = {}  # call id -> name
        # Call id -> pieces of its arguments; those of earlier attempts are whole.
        self._hidden: dict[str, list[str]] = {call_id: [] for call_id in hidden}

    def record(self, event: AgentEvent) -> None:
        _STEPS[type(event)](self, event)

    # -- messages and reasoning ---------------------------------------------------------
    def _message_started(self, event: types.MessageStarted) -> None:
        self._builder.message_started(event.phase)

    def _text(self, event: types.TextDelta) -> None:
        self._builder.text(event.text, event.logprobs)

    def _annotation(self, event: types.Annotation) -> None:
        self._builder.annotation(event.annotation)

    def _reasoning(self, event: types.ReasoningDelta) -> None:
        form = SUMMARY if event.is_summary else self._reasoning_form
        self._builder.reasoning(event.text, form)

    def _reasoning_sealed(self, event: types.ReasoningSealed) -> None:
        state: dict[str, Any] = {}
        if self._shows_encrypted:
            self._builder.seal_reasoning(event.encrypted_content)
        else:
            self._builder.seal_reasoning(None)
            state["encrypted_content"] = event.encrypted_content
        self._item_state(types.ItemState(state, event.provider))

    def _item_state(self, event: types.ItemState) -> None:
        """Beside the item, in the log alone; before its tool runs, so that a crash loses none."""
        added: Event = {
            "type": ITEM_STATE,
            "output_index": self._builder.snapshot.item_count - 1,
            "provider": event.provider,
            "state": event.state,
        }
        if event.call_id:  # the output may hide the call
            added["call_id"] = event.call_id
            added["output_index"] = self._builder.output_index_of(event.call_id)
        self._builder.add(added)

    def _refusal(self, event: types.RefusalDelta) -> None:
        self._builder.refusal(event.text)

    def _opaque_item(self, event: types.OpaqueItem) -> None:
        self._builder.opaque(event.item)

    def _cut(self, event: types.Cut) -> None:
        self._builder.close("incomplete")

    # -- calls --------------------------------------------------------------------------
    def _call_started(self, event: types.CallStarted) -> None:
        if event.name in self._client_names:
            self._builder.call_started(event.call_id, event.name, event.kind)
            return
        self._served[event.call_id] = event.name
        if event.name.startswith(INTERNAL_TOOL_PREFIX):
            self._hidden[event.call_id] = []
            self._builder.message_started(None)  # text behind a hidden call is another message
        elif self._form == "mcp_call":
            label = OWN_LABEL
            tool = self._tools.get(event.name)
            if tool is not None and tool.server_label:
                label = tool.server_label
            name = event.name.removeprefix(f"{label}.")
            self._builder.mcp_call_started(event.call_id, label, name)
        else:
            self._builder.call_started(event.call_id, event.name)

    def _call_arguments(self, event: types.CallArguments) -> None:
        if event.call_id in self._hidden:
            self._hidden[event.call_id].append(event.delta)
        else:
            self._builder.call_arguments(event.call_id, event.delta)

    def _call_finished(self, event: types.CallFinished) -> None:
        if event.call_id not in self._hidden:
            self._builder.call_finished(event.call_id, is_cut=event.is_cut)
        if event.call_id in self._served and not event.is_cut:
            hidden = self._hidden.get(event.call_id)
            called: Event = {
                "type": TOOL_CALLED,
                "call_id": event.call_id,
                "name": self._served[event.call_id],
                "output_index": None,
            }
            if hidden is None:
                called["output_index"] = self._builder.output_index_of(event.call_id)
            else:
                called["arguments"] = "".join(hidden)
            self._builder.add(called)

    def _tool_finished(self, event: types.ToolFinished) -> None:
        if event.call_id not in self._hidden:
            self._builder.tool_output(event.call_id, event.output, is_error=event.is_error)

    # -- rounds -------------------------------------------------------------------------
    def _answer_started(self, event: types.AnswerStarted) -> None:
        self._builder.add({"type": MODEL_STARTED, "input_tokens": event.input_tokens})

    def _round_finished(self, event: types.RoundFinished) -> None:
        finished: Event = {
            "type": MODEL_FINISHED,
            "reason": event.reason,
            "message": event.message,
            "usage": asdict(event.usage),
        }
        if event.upstream_ids:
            finished["upstream_ids"] = list(event.upstream_ids)
        self._builder.add(finished)
        # Before the tools run: after a crash in between, whole items would count as cut off.
        if event.is_cut_short:
            self._builder.close("incomplete")
        else:
            self._builder.close("completed")

    def _compaction(self, event: types.Compaction) -> None:
        if event.context is None:
            self._builder.compaction_started(self._seal(CompactedContext()))
            return
        self._builder.compacted(self._seal(event.context))
        self._builder.add({"type": CONTEXT_COMPACTED, "usage": asdict(event.usage)})

    def _truncation(self, event: types.Truncation) -> None:
        self._builder.add(
            {
                "type": CONTEXT_TRUNCATED,
                "dropped_items": event.dropped_items,
                "kept_items": event.kept_items,
            }
        )

    def _protocol_deviation(self, event: types.ProtocolDeviation) -> None:
        self._builder.add({"type": PROTOCOL_DEVIATION, "name": event.name})

    def _upstream_position(self, event: types.UpstreamPosition) -> None:
        self._builder.add(
            {
                "type": UPSTREAM_POSITION,
                "upstream": event.upstream,
                "upstream_id": event.response_id,
                "cursor": event.cursor,
            }
        )

    def _upstream_abandoned(self, event: types.UpstreamAbandoned) -> None:
        self._builder.add({"type": UPSTREAM_ABANDONED})


_STEPS: dict[type, Callable[[Recorder, Any], None]] = {
    types.MessageStarted: Recorder._message_started,
    types.TextDelta: Recorder._text,
    types.Annotation: Recorder._annotation,
    types.ReasoningDelta: Recorder._reasoning,
    types.ReasoningSealed: Recorder._reasoning_sealed,
    types.ItemState: Recorder._item_state,
    types.RefusalDelta: Recorder._refusal,
    types.OpaqueItem: Recorder._opaque_item,
    types.Cut: Recorder._cut,
    types.ProtocolDeviation: Recorder._protocol_deviation,
    types.UpstreamPosition: Recorder._upstream_position,
    types.UpstreamAbandoned: Recorder._upstream_abandoned,
    types.CallStarted: Recorder._call_started,
    types.CallArguments: Recorder._call_arguments,
    types.CallFinished: Recorder._call_finished,
    types.ToolFinished: Recorder._tool_finished,
    types.AnswerStarted: Recorder._answer_started,
    types.RoundFinished: Recorder._round_finished,
    types.Compaction: Recorder._compaction,
    types.Truncation: Recorder._truncation,
}
