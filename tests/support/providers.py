"""The providers in the tests of upstreams, and the rounds that are recorded of them."""

from dataclasses import dataclass
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import (
    Cut,
    ModelFailed,
    ProtocolDeviation,
    ReasoningDelta,
    RoundEvent,
    RoundFinished,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.rounds import ask
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.provider import OpenAIProvider
from responses_app.protocol.items import Item
from tests.support.model_stub import ModelStub

KEY = "sk-secret-0123456789"
COUNTED = Usage(11, 7, cached_tokens=3, cache_write_tokens=2, reasoning_tokens=5)  # one answer of the stub
ASKED: list[Item] = [{"type": "message", "role": "user", "content": "Hi"}]
CALL = ModelCall(model="hermes-agent", items=ASKED)
BACKOFF_SECS = 0.001


class Providers:
    """Makes providers of the stub, which are closed in the end."""

    def __init__(self, stub: ModelStub) -> None:
        self.stub = stub
        self.made: list[OpenAIProvider] = []

    def provider(self, mode: str, name: str = "custom", **fields: Any) -> OpenAIProvider:
        given = {"base_url": self.stub.url, "api_key": KEY, "model": "m-1", "api_mode": mode, **fields}
        self.made.append(OpenAIProvider(Upstream(name=name, **given)))
        return self.made[-1]

    @property
    def requests(self) -> int:
        return len(self.stub.asked)

    def shown(self, request: int) -> str:
        """Everything the model was shown in a request."""
        body = self.stub.asked[request].body
        return str(body.get("messages") or body.get("input"))


@dataclass(frozen=True)
class RecordedRound:
    """A round as its listener knows it."""

    events: list[RoundEvent]
    answer: AnswerBuffer

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thought(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def cuts(self) -> int:
        return self.events.count(Cut())

    @property
    def deviations(self) -> list[str]:
        return [event.name for event in self.events if isinstance(event, ProtocolDeviation)]

    @property
    def finish(self) -> RoundFinished:
        last = self.events[-1]
        assert isinstance(last, RoundFinished)
        return last

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(call.name, call.arguments) for call in self.answer.calls()]


async def record_round(*providers: Provider, call: ModelCall = CALL, retries: int = 2) -> RecordedRound:
    events, answer = [], AnswerBuffer()
    async for event in ask(providers, call, retries, answer, BACKOFF_SECS):
        events.append(event)
    return RecordedRound(events, answer)


async def failed_round(providers: Providers, mode: str, retries: int = 2) -> ModelFailed:
    with pytest.raises(ModelFailed) as failed:
        await record_round(providers.provider(mode), retries=retries)
    return failed.value
