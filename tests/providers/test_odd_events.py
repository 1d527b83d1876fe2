"""An event that is JSON and malformed breaks the answer: the model is asked again."""

from typing import Any

import pytest

from tests.support.model_stub import Raw, sse
from tests.support.providers import Providers, record_round


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def call(**fields: Any) -> dict[str, Any]:
    function = {"name": "calculate", "arguments": "{}"}
    return {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function, **fields}]}


def details(*fragments: dict[str, Any]) -> dict[str, Any]:
    return {"content": "x", "reasoning_details": list(fragments)}


def cited(depth: int) -> dict[str, Any]:
    return {"content": "x", "annotations": [{"type": "odd", "odd": nested(depth)}]}


@pytest.mark.parametrize(
    "delta",
    [
        call(function={"name": ["calculate"], "arguments": "{}"}),
        call(extra_content=nested(300)),
        details({"type": "t", "index": 0, "text": "a"}, {"type": "t", "index": 0, "text": 5}),
        details({"type": ["t"], "index": 0}),
        details({"type": "t", "data": nested(300)}),
        cited(300),
    ],
)
async def test_a_chat_answer_with_a_senseless_part_is_asked_for_again(
    providers: Providers, delta: dict[str, Any]
) -> None:
    chunks = (
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )
    providers.stub.play(Raw(b"".join(map(sse, chunks))))
    recorded = await record_round(providers.provider("chat_completions"))
    assert len(providers.stub.asked) == 2
    assert recorded.text.endswith("Hello wörld 🎉")
    assert recorded.calls == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "c1", "name": ["calculate"], "arguments": "{}"},
        {"type": "odd_call", "data": nested(300)},
    ],
)
async def test_so_is_an_answer_of_responses(providers: Providers, item: dict[str, Any]) -> None:
    events = (
        {"type": "response.created", "response": {}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"output": []}},
    )
    providers.stub.play(Raw(b"".join(map(sse, events))))
    recorded = await record_round(providers.provider("codex_responses"))
    assert len(providers.stub.asked) == 2
    assert recorded.text == "Hello wörld 🎉"
