"""OpenAI, and every compatible server."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import openai

from gateway_app.agent.events import (
    ModelEvent,
    ProtocolDeviation,
    UpstreamAbandoned,
    UpstreamPosition,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.asking import ask
from gateway_app.providers.openai.chat_completions.answer import CHAT_COMPLETIONS
from gateway_app.providers.openai.client import Upstream, UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.formatted_answers import FormattedAnswers
from gateway_app.providers.openai.forms import Forms
from gateway_app.providers.openai.media import Media
from gateway_app.providers.openai.refusals import CallRefusals, Refusals
from gateway_app.providers.openai.responses.answer import CODEX_RESPONSES
from gateway_app.providers.openai.responses.background import PICK_UP
from gateway_app.providers.openai.state import identity_of
from gateway_app.providers.openai.state_refusals import StateRefusals
from gateway_app.providers.openai.transport import FRESH_CONNECTION

logger = logging.getLogger(__name__)


PROTOCOLS = {"chat_completions": CHAT_COMPLETIONS, "codex_responses": CODEX_RESPONSES}

Body = dict[str, Any]


class OpenAIProvider:
    def __init__(self, upstream: Upstream) -> None:
        self.identity = identity_of(upstream)
        self._client = UpstreamClient(upstream)
        self._forms = Forms(self._client, PROTOCOLS[upstream.api_mode])
        self._refused_state = StateRefusals(upstream.preset)
        self._refused_fields = Refusals(upstream)
        self._media = Media(upstream)
        self._formatted = FormattedAnswers(upstream, self._ask)

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        if call.is_formatted:
            return self._formatted.stream(call)
        return self._ask(call, _as_it_is)

    async def _ask(
        self, call: ModelCall, change: Callable[[Body], Body]
    ) -> AsyncGenerator[ModelEvent]:
        """The answer in the best form that the upstream takes; ``change`` is made to each body."""
        given = call
        call, left_out = await self._media.adapted(given)
        exchange = self._forms.best(call)
        if call.resume is not None and exchange.form != PICK_UP:
            yield UpstreamAbandoned()
        fields = self._refused_fields.of(call)
        exchange.body, deviations = self._applied(change(exchange.body), fields)
        deviations = left_out + deviations
        refused_form = ""
        while True:
            for deviation in deviations:
                yield deviation
            try:
                async with aclosing(ask(exchange, call)) as events:
                    async for event in events:
                        yield event
                fields.confirm()
                self._forms.remember_refused(refused_form)
                return
            except Refused as refused:
                if self._media.learn(given, refused):
                    call, left_out = await self._media.adapted(given)
                    exchange = self._forms.best(call)
                    exchange.body, deviations = self._applied(change(exchange.body), fields)
                    deviations = left_out + deviations
                    continue
                less, deviations = self._learn(exchange.body, refused, fields)
                if deviations:
                    exchange.body = less
                    continue
                if not self._forms.may_refuse(exchange, refused):
                    exchange.body, deviations = _without_stream(exchange.body, refused)
                    continue
            refused_form = exchange.form
            if refused_form == PICK_UP:
                yield UpstreamAbandoned()
            exchange = self._forms.without(refused_form, call)
            exchange.body, deviations = self._applied(change(exchange.body), fields)
            deviations = [ProtocolDeviation(f"no {refused_form}"), *deviations]

    def _applied(self, body: Body, fields: CallRefusals) -> tuple[Body, list[ProtocolDeviation]]:
        """The body without what the upstream has refused before."""
        body, states = self._refused_state.applied(body)
        body, others = fields.applied(body)
        return body, states + others

    def _learn(
        self, body: Body, refused: Refused, fields: CallRefusals
    ) -> tuple[Body, list[ProtocolDeviation]]:
        """The body without what it is refused for; no deviation if that can't be left out."""
        text = fields.without_clients_names(refused.refused_text)
        less, deviations = self._refused_state.learn(body, refused, text)
        if deviations:
            return less, deviations
        return fields.learn(body, refused)

    async def cancel(self, position: UpstreamPosition) -> None:
        """Stop an answer that runs at this upstream by itself."""
        client = self._client
        if position.upstream != self.identity:
            return
        try:
            await client.sdk.responses.with_raw_response.cancel(
                position.response_id, extra_headers=client.headers | FRESH_CONNECTION
            )
        except openai.OpenAIError as error:
            reason = client.redact(str(error))
            logger.info("An answer was not cancelled at its upstream: %s", reason)

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._forms.aclose()


def _as_it_is(body: Body) -> Body:
    return body


def _without_stream(body: Body, refused: Refused) -> tuple[Body, list[ProtocolDeviation]]:
    """The last resort for a refusal that names no field: the whole answer at once."""
    if not refused.is_about_streaming or not body["stream"]:
        raise refused
    less = {name: value for name, value in body.items() if name != "stream_options"}
    return less | {"stream": False}, [ProtocolDeviation("no streaming")]
