"""One request to a model over the agent's own round, and what came of it."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import (
    Cut,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    ReasoningDelta,
    RoundFinished,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.rounds import ask
from gateway_app.agent.tools import ToolCall

NO_RETRIES = 0


@dataclass
class Reply:
    text: str = ""  # after the last cut
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    reason: str = ""
    secs: float = 0.0
    deviations: list[str] = field(default_factory=list)


async def ask_model(provider: Provider, call: ModelCall) -> Reply:
    """Raises ``ModelFailed`` where the model's server refuses the request or can't be reached."""
    reply = Reply()
    answer = AnswerBuffer()
    started = time.monotonic()
    async with aclosing(ask((provider,), call, NO_RETRIES, answer)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                reply.text += event.text
            elif isinstance(event, ReasoningDelta):
                reply.reasoning += event.text
            elif isinstance(event, Cut):
                reply.text = ""
            elif isinstance(event, ProtocolDeviation):
                reply.deviations.append(event.name)
            elif isinstance(event, RoundFinished):
                reply.usage = event.usage
                reply.reason = event.reason
    reply.calls = answer.calls()
    reply.secs = time.monotonic() - started
    return reply


async def ask_for_usage(provider: Provider, call: ModelCall) -> Usage:
    """What the model's server counts; a round estimates what it does not."""
    counted = Usage()
    async with aclosing(provider.stream(call)) as events:
        async for event in events:
            if isinstance(event, ModelFinished):
                counted = event.usage
    return counted


class BreaksOnce:
    """A provider whose first answer breaks off after some text; the second request is a real one.

    So the continuation is asked for exactly as after a lost connection.
    """

    def __init__(self, provider: Provider, text: str) -> None:
        self._provider = provider
        self._text = text
        self._is_broken = False
        self.identity = provider.identity

    def __getattr__(self, name: str) -> object:
        return getattr(self._provider, name)

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        if not self._is_broken:
            self._is_broken = True
            yield TextDelta(self._text)
            raise ModelFailed("The doctor ends this answer.", is_transient=True)
        async with aclosing(self._provider.stream(call)) as events:
            async for event in events:
                yield event
