"""Reasoning that goes back to the upstream takes room in the window; other reasoning takes none."""

from dataclasses import replace

import pytest

from gateway_app.agent.budget import Budget
from gateway_app.agent.events import Compaction, ModelEvent, ReasoningDelta
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import ToolCall, ToolResult
from responses_app.protocol.items import Item
from responses_app.protocol.sent_reasoning import SentReasoning, request_sizes
from tests.support.plain_models import LOOK, PlainModel, asks_for, writes

THOUGHT = "I think about numbers now " * 200
USER: Item = {"type": "message", "role": "user", "content": "go"}
THINKING: Item = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": THOUGHT}]}
CALLED: Item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
OUTPUT: Item = {"type": "function_call_output", "call_id": "c", "output": "no"}
TURN = [USER, THINKING, CALLED, OUTPUT]


@pytest.mark.parametrize(
    ("sent", "older", "current"),
    [
        (SentReasoning.NONE, False, False),
        (SentReasoning.LOOP, False, True),
        (SentReasoning.ALL, True, True),
    ],
)
def test_the_text_that_is_sent_is_counted(sent: SentReasoning, older: bool, current: bool) -> None:
    sizes = request_sizes([*TURN, *TURN], sent)
    assert [sizes[1] > 900, sizes[5] > 900] == [older, current]


def test_encrypted_reasoning_and_the_state_of_calls_are_counted() -> None:
    encrypted: Item = {"type": "reasoning", "summary": [], "encrypted_content": "A" * 6000}
    assert request_sizes([USER, encrypted, CALLED], SentReasoning.ENCRYPTED)[1] > 900
    details = {"provider": "p", "state": {"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]}}
    with_state: Item = {**CALLED, "provider_state": details}  # type: ignore[typeddict-item]
    [_, thought, call] = request_sizes([USER, THINKING, with_state])
    assert (thought < 10, call > 900) == (True, True)


async def test_a_loop_of_long_reasoning_is_compacted_before_it_overflows() -> None:
    def thinks(call: ModelCall) -> list[ModelEvent]:
        if not call.tools:
            return writes("the summary")
        if len(model.calls) > 8:
            return writes("done")
        return [ReasoningDelta(THOUGHT), *asks_for("look", f'{{"n": {len(model.calls)}}}')]

    async def look(call: ToolCall) -> ToolResult:
        return ToolResult(call.arguments)

    model = PlainModel(thinks)
    budget = Budget(4000, is_compacting=True)
    call = ModelCall("m", [USER], tools=(LOOK,), budget=budget, compact_threshold=3200)
    events = [event async for event in run_turn([model], call, look, TurnProgress(), retries=0)]
    assert any(isinstance(event, Compaction) for event in events)
    for asked in model.calls:
        texts = sum(len(THOUGHT) // 5 for item in asked.items if item["type"] == "reasoning")
        assert texts < 4000
    truncating = replace(call, budget=Budget(4000, is_truncating=True), compact_threshold=None)
    model = PlainModel(thinks)
    async for _ in run_turn([model], truncating, look, TurnProgress(), retries=0):
        pass
    assert sum(item["type"] == "reasoning" for item in model.calls[-1].items) < 4
