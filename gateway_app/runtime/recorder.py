"""Turns the events of the agent into the output of the response."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway_app.agent import events as types
from gateway_app.agent.approval_items import OWN_LABEL
from gateway_app.agent.events import AgentEvent
from gateway_app.agent.tools import ApprovalGiven, ApprovalRequested, Tool
from gateway_app.runtime.unseen_calls import (
    ALL_SEEN,
    INTERNAL_TOOL_PREFIX,
    HeldCall,
    UnseenCalls,
)
from responses_app.agent_profiles import MCP_CALL
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import (
    CONTEXT_COMPACTED,
    CONTEXT_TRUNCATED,
    ITEM_STATE,
    MODEL_FINISHED,
    MODEL_STARTED,
    PROTOCOL_DEVIATION,
    TOOL_CALLED,
    TOOL_NAMED,
    UPSTREAM_ABANDONED,
    UPSTREAM_POSITION,
    Event,
)
from responses_app.protocol.items import CompactedContext, without_fields
from responses_app.protocol.reasoning_items import RAW, SUMMARY

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
        unseen: UnseenCalls = ALL_SEEN,
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
        self._hidden: dict[str, list[str]] = {call_id: [] for call_id in unseen.hidden}
        self._asks_client = unseen.asks_client
        self._request_item = unseen.request_item
        self._held = dict(unseen.held)

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
        self._builder.opaque(without_fields(event.item, "id"))

    def _cut(self, event: types.Cut) -> None:
        self._builder.close("incomplete")

    # -- calls --------------------------------------------------------------------------
    def _call_started(self, event: types.CallStarted) -> None:
        if event.name in self._client_names:
            self._builder.call_started(event.call_id, event.name, event.kind)
            return
        self._served[event.call_id] = event.name
        is_internal = event.name.startswith(INTERNAL_TOOL_PREFIX)
        if is_internal or event.name in self._asks_client:
            self._hidden[event.call_id] = []
            self._builder.message_started(None)  # text behind a hidden call is another message
            return
        if self._form == MCP_CALL:
            label, name = self._label_and_name(event.name)
            self._builder.mcp_call_started(event.call_id, label, name)
        else:
            self._builder.call_started(event.call_id, event.name)
        named: Event = {
            "type": TOOL_NAMED,
            "call_id": event.call_id,
            "name": event.name,
            "output_index": self._builder.output_index_of(event.call_id),
        }
        self._builder.add(named)

    def _label_and_name(self, name: str) -> tuple[str, str]:
        label = OWN_LABEL
        tool = self._tools.get(name)
        if tool is not None and tool.server_label:
            label = tool.server_label
        return label, name.removeprefix(f"{label}.")

    def _call_arguments(self, event: types.CallArguments) -> None:
        if event.call_id in self._hidden:
            self._hidden[event.call_id].append(event.delta)
        else:
            self._builder.call_arguments(event.call_id, event.delta)

    def _call_finished(self, event: types.CallFinished) -> None:
        call_id = event.call_id
        if call_id not in self._hidden:
            self._builder.call_finished(call_id, is_cut=event.is_cut)
        if call_id not in self._served or event.is_cut:
            return
        name = self._served[call_id]
        if call_id not in self._hidden:
            self._add_called(call_id, name)
            return
        arguments = "".join(self._hidden[call_id])
        self._builder.add(
            {
                "type": TOOL_CALLED,
                "call_id": call_id,
                "name": name,
                "output_index": None,
                "arguments": arguments,
            }
        )
        if name in self._asks_client:
            del self._hidden[call_id]
            self._held[call_id] = HeldCall(name, arguments)

    def _add_called(self, call_id: str, name: str) -> None:
        self._builder.add(
            {
                "type": TOOL_CALLED,
                "call_id": call_id,
                "name": name,
                "output_index": self._builder.output_index_of(call_id),
            }
        )

    def _tool_finished(self, event: types.ToolFinished) -> None:
        self._show_held(event.call_id)
        if event.call_id not in self._hidden:
            self._builder.tool_output(event.call_id, event.output, is_error=event.is_error)

    # -- approvals ----------------------------------------------------------------------
    def _approval_given(self, event: ApprovalGiven) -> None:
        self._show_held(event.call_id)

    def _show_held(self, call_id: str) -> None:
        held = self._held.pop(call_id, None)
        if held is None:
            return
        if held.request_id is not None or self._form == MCP_CALL:
            label, name = self._label_and_name(held.name)
            self._builder.mcp_call_started(call_id, label, name, held.request_id)
        else:
            self._builder.call_started(call_id, held.name)
        self._builder.call_arguments(call_id, held.arguments)
        self._builder.call_finished(call_id)
        self._add_called(call_id, held.name)

    def _approval_requested(self, event: ApprovalRequested) -> None:
        held = self._held.pop(event.call_id, None)
        if held is None:  # an earlier attempt has asked
            return
        assert self._request_item is not None
        label, name = self._label_and_name(held.name)
        index = self._builder.snapshot.item_count
        self._builder.opaque(self._request_item(index, label, name, held.arguments))
        self._builder.add(
            {
                "type": TOOL_CALLED,
                "call_id": event.call_id,
                "name": held.name,
                "output_index": index,
            }
        )

    # -- rounds -------------------------------------------------------------------------
    def _answer_started(self, event: types.AnswerStarted) -> None:
        self._builder.add({"type": MODEL_STARTED, "input_tokens": event.input_tokens})

    def _round_finished(self, event: types.RoundFinished) -> None:
        finished: Event = {
            "type": MODEL_FINISHED,
            "reason": event.reason,
            "message": event.message,
            "usage": event.usage.stored(),
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
        if event.context.items:
            self._builder.compacted(self._seal(event.context))
        self._builder.close("incomplete")  # without a summary the turn goes on
        self._builder.add({"type": CONTEXT_COMPACTED, "usage": event.usage.stored()})

    def _truncation(self, event: types.Truncation) -> None:
        truncated: Event = {"type": CONTEXT_TRUNCATED, "kept_items": event.kept_items}
        truncated["dropped_items"] = event.dropped_items
        self._builder.add(truncated)

    def _protocol_deviation(self, event: types.ProtocolDeviation) -> None:
        self._builder.add({"type": PROTOCOL_DEVIATION, "name": event.name})

    def _upstream_position(self, event: types.UpstreamPosition) -> None:
        moved: Event = {"type": UPSTREAM_POSITION, "upstream": event.upstream}
        moved["upstream_id"] = event.response_id
        moved["cursor"] = event.cursor
        self._builder.add(moved)

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
    ApprovalGiven: Recorder._approval_given,
    ApprovalRequested: Recorder._approval_requested,
    types.AnswerStarted: Recorder._answer_started,
    types.RoundFinished: Recorder._round_finished,
    types.Compaction: Recorder._compaction,
    types.Truncation: Recorder._truncation,
}
