"""OpenAI, and every compatible server."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from gateway_app.agent.events import ModelEvent, ModelFailed, ProtocolDeviation
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.chat_completions.answer import CHAT_COMPLETIONS
from gateway_app.providers.openai.chat_completions.returned_state import without_reasoning
from gateway_app.providers.openai.client import FRESH_CONNECTION, Upstream, UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.responses.answer import CODEX_RESPONSES
from gateway_app.providers.openai.responses.request import (
    without_encrypted_include,
    without_encrypted_input,
)
from gateway_app.providers.openai.state import identity_of
from responses_app.metrics import UpstreamRequest
from responses_app.protocol.token_estimate import estimate_tokens

PROTOCOLS = {"chat_completions": CHAT_COMPLETIONS, "codex_responses": CODEX_RESPONSES}
# Deviations: what a server does not do, or take back.
NOT_ENCRYPTED = "no encrypted reasoning"
UNREADABLE = "encrypted reasoning not taken back"
NO_REASONING = "reasoning not taken back"


class OpenAIProvider:
    def __init__(self, upstream: Upstream) -> None:
        self.identity = identity_of(upstream)
        self._client = UpstreamClient(upstream)
        self._protocol = PROTOCOLS[upstream.api_mode]
        self._refused: set[str] = set()  # deviations that every further request heeds

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        body: dict[str, Any] = {"stream": True}
        body |= self._protocol.body(call, self._client.upstream)
        body = self._without_refused(body, call)
        while True:
            try:
                async with aclosing(self._request(body, call)) as events:
                    async for event in events:
                        yield event
                return
            except Refused as refused:
                body, deviation = self._asking_for_less(body, refused, call)
                self._refused.add(deviation.name)
            yield deviation

    async def _request(self, body: dict[str, Any], call: ModelCall) -> AsyncGenerator[ModelEvent]:
        client = self._client
        answer = self._protocol.answer(call, client.upstream)
        failure: ModelFailed | None = None
        headers = client.headers
        if call.is_retry:
            headers = headers | FRESH_CONNECTION
        opening = self._protocol.open(client, body, headers)
        tokens = estimate_tokens(call.items, call.instructions, call.tool_specs())
        with UpstreamRequest(client.upstream.name, client.upstream.model) as request:
            try:
                events = client.events(opening, answer.is_last, tokens, body["stream"])
                async with aclosing(events):
                    async for event in events:
                        request.note_event()
                        for model_event in answer.understand(event):
                            yield model_event
            except ModelFailed as found:
                failure = client.redacted(found)
            for model_event in answer.end(failure):
                yield model_event

    async def aclose(self) -> None:
        await self._client.aclose()

    def _without_refused(self, body: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        if NOT_ENCRYPTED in self._refused:
            body = without_encrypted_include(body, call)
        if NO_REASONING in self._refused:
            body = without_reasoning(body, self._client.upstream.preset)
        return body

    def _asking_for_less(
        self, body: dict[str, Any], refused: Refused, call: ModelCall
    ) -> tuple[dict[str, Any], ProtocolDeviation]:
        """The same request without the state that was refused, or with fewer options."""
        if refused.names_encrypted_content:
            less = without_encrypted_input(body)
            if less != body:
                return less, ProtocolDeviation(UNREADABLE)
            less = without_encrypted_include(body, call)
            if less != body:
                return less, ProtocolDeviation(NOT_ENCRYPTED)
        if refused.names_reasoning:
            less = without_reasoning(body, self._client.upstream.preset)
            if less != body:
                return less, ProtocolDeviation(NO_REASONING)
        return _with_fewer_options(body, refused)


def _with_fewer_options(
    body: dict[str, Any], refused: Refused
) -> tuple[dict[str, Any], ProtocolDeviation]:
    """The same request without what was refused: its options first, then streaming itself."""
    less = {name: value for name, value in body.items() if name != "stream_options"}
    if refused.names_stream_options and less != body:
        return less, ProtocolDeviation("no stream_options")
    if refused.is_about_streaming and body["stream"]:
        less["stream"] = False
        return less, ProtocolDeviation("no streaming")
    raise refused
