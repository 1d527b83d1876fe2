"""OpenAI, and every compatible server."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import openai

from gateway_app.agent.events import (
    ModelEvent,
    ModelFailed,
    ProtocolDeviation,
    UpstreamAbandoned,
    UpstreamPosition,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.chat_completions.answer import CHAT_COMPLETIONS
from gateway_app.providers.openai.client import FRESH_CONNECTION, Upstream, UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.exchange import Exchange
from gateway_app.providers.openai.forms import Forms
from gateway_app.providers.openai.responses.answer import CODEX_RESPONSES
from gateway_app.providers.openai.responses.background import PICK_UP, identity
from responses_app.metrics import UpstreamRequest
from responses_app.protocol.token_estimate import estimate_tokens

logger = logging.getLogger(__name__)

PROTOCOLS = {"chat_completions": CHAT_COMPLETIONS, "codex_responses": CODEX_RESPONSES}


class OpenAIProvider:
    def __init__(self, upstream: Upstream) -> None:
        self._client = UpstreamClient(upstream)
        self._protocol = PROTOCOLS[upstream.api_mode]
        self._forms = Forms(self._client, self._protocol)

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        exchange = self._forms.best(call)
        if call.resume is not None and exchange.form != PICK_UP:
            yield UpstreamAbandoned()
        refused_form = ""
        while True:
            try:
                async with aclosing(self._send(exchange, call)) as events:
                    async for event in events:
                        yield event
                self._forms.remember_refused(refused_form)
                return
            except Refused as refused:
                if not self._forms.may_refuse(exchange, refused):
                    body, deviation = _asking_for_less(exchange.body, refused)
                    exchange.body = body
                else:
                    refused_form = exchange.form
                    deviation = ProtocolDeviation(f"no {refused_form}")
                    exchange = self._forms.without(refused_form, call)
                    if refused_form == PICK_UP:
                        yield UpstreamAbandoned()
            yield deviation

    async def _send(self, exchange: Exchange, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        client = exchange.client
        answer = exchange.answer
        failure: ModelFailed | None = None
        headers = client.headers
        if call.is_retry:
            headers = headers | FRESH_CONNECTION
        tokens = estimate_tokens(call.items, call.instructions, call.tool_specs())
        with UpstreamRequest(client.upstream.name, client.upstream.model) as request:
            try:
                events = exchange.events(headers, tokens)
                async with aclosing(events):
                    async for event in events:
                        request.note_event()
                        for model_event in answer.understand(event):
                            yield model_event
            except ModelFailed as found:
                failure = client.redacted(found)
            for model_event in answer.end(failure):
                yield model_event

    async def cancel(self, position: UpstreamPosition) -> None:
        """Stop an answer that runs at this upstream by itself."""
        client = self._client
        if position.upstream != identity(client.upstream):
            return
        try:
            await client.sdk.responses.with_raw_response.cancel(
                position.response_id, extra_headers=client.headers
            )
        except openai.OpenAIError as error:
            reason = client.redact(str(error))
            logger.info("An answer was not cancelled at its upstream: %s", reason)

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._forms.aclose()


def _asking_for_less(
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
