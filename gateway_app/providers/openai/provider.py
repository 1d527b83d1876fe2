"""OpenAI, and every compatible server."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from gateway_app.agent.events import ModelEvent, ModelFailed, ProtocolDeviation
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.chat_completions.answer import CHAT_COMPLETIONS
from gateway_app.providers.openai.client import Upstream, UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.formatted_answers import FormattedAnswers
from gateway_app.providers.openai.refusals import Refusals
from gateway_app.providers.openai.responses.answer import CODEX_RESPONSES
from gateway_app.providers.openai.text_calls import with_text_calls
from gateway_app.providers.openai.transport import FRESH_CONNECTION
from responses_app.metrics import UpstreamRequest

PROTOCOLS = {"chat_completions": CHAT_COMPLETIONS, "codex_responses": CODEX_RESPONSES}


class OpenAIProvider:
    def __init__(self, upstream: Upstream) -> None:
        self._client = UpstreamClient(upstream)
        self._protocol = PROTOCOLS[upstream.api_mode]
        self._refusals = Refusals()
        self._formatted = FormattedAnswers(upstream, self._ask)

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        if call.is_formatted:
            return self._formatted.stream(call)
        return self._ask(call, _as_it_is)

    async def _ask(
        self, call: ModelCall, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> AsyncGenerator[ModelEvent]:
        body: dict[str, Any] = {"stream": True}
        body |= change(self._protocol.body(call, self._client.upstream))
        body, deviations = self._refusals.applied(body)
        while True:
            for deviation in deviations:
                yield deviation
            try:
                async with aclosing(self._answer(body, call)) as events:
                    async for event in events:
                        yield event
                return
            except Refused as refused:
                body, deviations = self._asking_for_less(body, refused)

    def _answer(self, body: dict[str, Any], call: ModelCall) -> AsyncGenerator[ModelEvent]:
        events = self._request(body, call)
        if self._client.upstream.preset.writes_calls_as_text:
            return with_text_calls(events, call)
        return events

    async def _request(self, body: dict[str, Any], call: ModelCall) -> AsyncGenerator[ModelEvent]:
        client = self._client
        answer = self._protocol.answer(call, client.upstream)
        failure: ModelFailed | None = None
        headers = client.headers
        if call.is_retry:
            headers = headers | FRESH_CONNECTION
        opening = self._protocol.open(client, body, headers)
        tokens = call.input_tokens()
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

    def _asking_for_less(
        self, body: dict[str, Any], refused: Refused
    ) -> tuple[dict[str, Any], list[ProtocolDeviation]]:
        """The same request without what was refused: its options first, then streaming itself."""
        less, deviations = self._refusals.learn(body, refused)
        if deviations:
            return less, deviations
        if refused.is_about_streaming and body["stream"]:
            less = {name: value for name, value in body.items() if name != "stream_options"}
            return less | {"stream": False}, [ProtocolDeviation("no streaming")]
        raise refused

    async def aclose(self) -> None:
        await self._client.aclose()


def _as_it_is(body: dict[str, Any]) -> dict[str, Any]:
    return body
