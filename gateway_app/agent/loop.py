"""The agent loop: ask the model, run the tools it calls, ask again, until it is done."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway_app.agent.cleaning import clean_event
from gateway_app.agent.types import (
    AgentEvent,
    CallArguments,
    CallStarted,
    Item,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    Provider,
    ReasoningSealed,
    RefusalDelta,
    RunTool,
    TextDelta,
    ToolCall,
    ToolFinished,
    TurnFinished,
    Usage,
)

MAX_ITERATIONS = 90
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


async def run_turn(provider: Provider, call: ModelCall, run_tool: RunTool) -> AsyncGenerator[AgentEvent]:
    usage, ran = Usage(), 0
    client_names = {tool["name"] for tool in call.client_tools}
    for _ in range(MAX_ITERATIONS):
        said = _Said()
        async with aclosing(provider.stream(call)) as events:
            async for raw in events:
                event = clean_event(raw)
                said.note(event)
                if not isinstance(event, ModelFinished):
                    yield event
        usage += said.finish.usage
        calls = said.calls()
        if said.finish.reason in _INCOMPLETE or not calls:
            yield TurnFinished(usage, _INCOMPLETE.get(said.finish.reason))
            return
        ran += len(calls)
        if call.max_tool_calls is not None and ran > call.max_tool_calls:
            yield TurnFinished(usage, "max_tool_calls")
            return
        served = [tool_call for tool_call in calls if tool_call.name not in client_names]
        outputs = dict(zip((c.call_id for c in served), await _run_all(served, run_tool), strict=True))
        for call_id, output in outputs.items():
            yield ToolFinished(call_id, output)
        if len(served) < len(calls):
            yield TurnFinished(usage)  # the client answers the rest in its next request
            return
        call = call.followed_by(said.items(outputs))
    yield TurnFinished(usage, "max_iterations")


async def _run_all(calls: list[ToolCall], run_tool: RunTool) -> list[str]:
    return list(await asyncio.gather(*(run_tool(tool_call) for tool_call in calls)))


class _Said:
    """What the model said in one call, for the tools and for the next call."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.others: list[Item] = []  # what only the upstream understands, and wants to see again
        self.names: dict[str, str] = {}
        self.arguments: dict[str, list[str]] = {}
        self._finish: ModelFinished | None = None

    def note(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta | RefusalDelta):
            self.text.append(event.text)
        elif isinstance(event, ReasoningSealed):
            self.others.append({"type": "reasoning", "summary": [], "encrypted_content": event.encrypted_content})
        elif isinstance(event, OpaqueItem):
            self.others.append(event.item)
        elif isinstance(event, CallStarted):
            self.names[event.call_id] = event.name
            self.arguments[event.call_id] = []
        elif isinstance(event, CallArguments):
            self.arguments[event.call_id].append(event.delta)
        elif isinstance(event, ModelFinished):
            self._finish = event

    @property
    def finish(self) -> ModelFinished:
        if self._finish is None:
            raise ModelFailed("The model's stream ended without a finish reason.")
        return self._finish

    def calls(self) -> list[ToolCall]:
        return [ToolCall(call_id, self.names[call_id], "".join(parts)) for call_id, parts in self.arguments.items()]

    def items(self, outputs: dict[str, str]) -> list[Item]:
        items: list[Item] = list(self.others)
        if self.text:
            content = [{"type": "output_text", "text": "".join(self.text)}]
            items.append({"type": "message", "role": "assistant", "content": content})
        for call in self.calls():
            items.append(
                {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
            )
        for call_id, output in outputs.items():
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
        return items
