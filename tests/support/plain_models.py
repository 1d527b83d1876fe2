"""A model without any protocol: a function from the call to the events of its answer."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from gateway_app.agent.events import (
    AgentEvent,
    CallArguments,
    CallFinished,
    CallStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import Tool, ToolContext

Answer = list[ModelEvent] | ModelFailed


class PlainModel:
    identity = "plain"

    def __init__(self, answer: Callable[[ModelCall], Answer]) -> None:
        self._answer = answer
        self.calls: list[ModelCall] = []
        self.events: list[AgentEvent] = []  # of the turn, where the test keeps them here

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        self.calls.append(call)
        answer = self._answer(call)
        if isinstance(answer, ModelFailed):
            raise answer
        for event in answer:
            yield event


def writes(text: str, input_tokens: int = 10) -> list[ModelEvent]:
    events: list[ModelEvent] = [ModelFinished("stop", Usage(input_tokens, 1))]
    if text:
        events.insert(0, TextDelta(text))
    return events


def asks_for(tool: str, arguments: str = "{}", call_id: str = "") -> list[ModelEvent]:
    call_id = call_id or f"call_{next(_NUMBERS)}"
    return [
        CallStarted(call_id, tool),
        CallArguments(call_id, arguments),
        CallFinished(call_id),
        ModelFinished("tool_calls", Usage(10, 1)),
    ]


_NUMBERS = iter(range(1_000_000))


async def _look(arguments: dict[str, Any], context: ToolContext) -> str:
    return ""


LOOK = Tool("look", "Looks for something.", {"type": "object", "properties": {}}, _look)
