"""The items of earlier attempts as the model made them."""

from collections.abc import Mapping, Sequence

from gateway_app.agent.approval_items import as_function_call
from gateway_app.agent.context import as_function_output
from gateway_app.agent.model_call import CutAt
from gateway_app.agent.tools import ToolCall
from gateway_app.runtime.open_round import is_answer
from gateway_app.runtime.visible_results import ResultCap
from responses_app.models import ToolEvent
from responses_app.protocol.events import Event
from responses_app.protocol.item_states import ItemStates
from responses_app.protocol.items import (
    APPROVAL_REQUEST,
    CALLS,
    COMPACTION,
    OUTPUTS,
    Item,
    call_arguments,
    output_ids,
)

# The index of an item, the event of a hidden call, or None where a round or attempt ends.
Step = int | Event | None
# Behind one of these a model knows by itself that its message before was cut.
_ENDS_MESSAGE = CALLS | OUTPUTS | {"mcp_call", COMPACTION}


class ModelItems:
    """The output as the loop keeps it: calls as the model made them, outputs behind their round."""

    def __init__(
        self,
        steps: Sequence[Step],
        shown: Mapping[int, str],
        output: list[Item],
        ledger: Mapping[str, ToolEvent],
        states: ItemStates,
        cap: ResultCap,
    ) -> None:
        self._cap = cap
        self.items: list[Item] = []
        self.pending: list[ToolCall] = []
        self._states = states
        self._answered = output_ids(output)
        self._outputs: list[Item] = []
        for step in [*steps, None]:
            if step is None:
                self.items += self._outputs
                self._outputs = []
            elif isinstance(step, int):
                self._add(output[step], shown.get(step))
            else:
                self._add_hidden(step, ledger)

    def cut_at(self, open_round: list[Item]) -> CutAt | None:
        """Where the last message was cut; None if the model has nothing to go on with."""
        if not self._ends_in_cut_message(open_round):
            return None
        last = self.items[-1]
        has_reasoning = any(item["type"] == "reasoning" for item in open_round)
        if has_reasoning or last["type"] != "message" or last.get("status") != "incomplete":
            return CutAt.BEHIND
        return CutAt.TEXT

    def _ends_in_cut_message(self, open_round: list[Item]) -> bool:
        """Reasoning behind the message makes no difference."""
        for item in reversed(self.items):
            if item["type"] == "message":
                return is_answer(item) and item in open_round and not self.pending
            if item["type"] in _ENDS_MESSAGE:
                return False
        return False

    def _add(self, item: Item, call_id: str | None) -> None:
        if item["type"] in ("mcp_call", APPROVAL_REQUEST) and call_id is not None:
            output = None
            if item["type"] == "mcp_call" and item["status"] != "in_progress":
                output = as_function_output(item, call_id)
            self._add_call(as_function_call(item, call_id), output)
            return
        self.items.append(item)
        is_whole_call = item["type"] in CALLS and item["status"] == "completed"
        if is_whole_call and item["call_id"] not in self._answered:
            self.pending.append(ToolCall(item["call_id"], item["name"], call_arguments(item)))

    def _add_hidden(self, event: Event, ledger: Mapping[str, ToolEvent]) -> None:
        call: Item = {
            "type": "function_call",
            "call_id": event["call_id"],
            "name": event["name"],
            "arguments": event["arguments"],
        }
        state = self._states.of_hidden_call(event["call_id"])
        if state is not None:
            call["provider_state"] = state
        known = ledger.get(event["call_id"])
        output: Item | None = None
        if known is not None and known.is_over:
            output = {
                "type": "function_call_output",
                "call_id": event["call_id"],
                "output": self._cap.visible(event["name"], known.output),
            }
        self._add_call(call, output)

    def _add_call(self, call: Item, output: Item | None) -> None:
        self.items.append(call)
        if output is None:
            self.pending.append(ToolCall(call["call_id"], call["name"], call["arguments"]))
        else:
            self._outputs.append(output)
