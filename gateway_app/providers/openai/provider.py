"""OpenAI, and every compatible server."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import openai

from gateway_app.agent.budget import is_cut
from gateway_app.agent.events import (
    ModelEvent,
    ModelFailed,
    ProtocolDeviation,
    UpstreamAbandoned,
    UpstreamPosition,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.text_listener import TextListener
from gateway_app.providers.openai.answer import Answer
from gateway_app.providers.openai.chat_completions.answer import CHAT_COMPLETIONS
from gateway_app.providers.openai.client import Upstream, UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.exchange import Exchange
from gateway_app.providers.openai.formatted_answers import FormattedAnswers
from gateway_app.providers.openai.forms import Forms
from gateway_app.providers.openai.media import Media
from gateway_app.providers.openai.refusals import CallRefusals, Refusals
from gateway_app.providers.openai.responses.answer import CODEX_RESPONSES
from gateway_app.providers.openai.responses.background import PICK_UP
from gateway_app.providers.openai.sse import Event
from gateway_app.providers.openai.state import identity_of
from gateway_app.providers.openai.state_refusals import StateRefusals
from gateway_app.providers.openai.text_calls import with_text_calls
from gateway_app.providers.openai.transport import FRESH_CONNECTION
from responses_app.metrics import UpstreamRequest

logger = logging.getLogger(__name__)

CUT_PROMPT = "prompt cut by the upstream: set a larger context window there"
MAX_REFUSALS = 8  # of text by a listener; the rest of that read is sent as events
MIN_JUDGED_TOKENS = 1_000  # the estimate of a shorter prompt may be far off

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
                async with aclosing(self._answer(exchange, call)) as events:
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

    def _answer(self, exchange: Exchange, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        if exchange.client.upstream.preset.writes_calls_as_text:
            seen = replace(call, text_listener=None)  # each text may begin a call
            return with_text_calls(self._send(exchange, seen), call)
        return self._send(exchange, call)

    async def _send(self, exchange: Exchange, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        client = exchange.client
        answer = exchange.answer
        failure: ModelFailed | None = None
        headers = client.headers
        if call.is_retry:
            headers = headers | FRESH_CONNECTION
        with UpstreamRequest(client.upstream.name, client.upstream.model) as request:
            try:
                batches = exchange.events(headers, call.input_tokens())
                async with aclosing(batches):
                    async for batch in batches:
                        request.note_event()
                        texts = _TextRuns(batch, answer, call.text_listener)
                        while (event := await texts.next_event()) is not None:
                            for model_event in answer.understand(event):
                                yield model_event
            except ModelFailed as found:
                failure = client.redacted(found)
            if client.upstream.preset.truncates_silently and _is_cut(call, answer.usage):
                yield ProtocolDeviation(CUT_PROMPT)
            is_empty = failure is None and not request.has_event
            if is_empty and client.upstream.preset.hides_stream_errors:
                raise _empty_stream()
            for model_event in answer.finish(failure):
                yield model_event

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


class _TextRuns:
    """The events of one read; runs of text among them go to the listener."""

    def __init__(self, batch: list[Event], answer: Answer, listener: TextListener | None) -> None:
        self._batch = batch
        self._answer = answer
        self._listener = listener
        self._position = 0
        self._refusals = 0

    async def next_event(self) -> Event | None:
        """The next event that the listener did not get; None at the end."""
        if self._listener is not None and self._refusals < MAX_REFUSALS:
            await self._write(self._listener)
        if self._position == len(self._batch):
            return None
        self._position += 1
        return self._batch[self._position - 1]

    async def _write(self, listener: TextListener) -> None:
        texts: list[str] = []
        for position in range(self._position, len(self._batch)):
            text = self._answer.plain_text(self._batch[position])
            if text is None:
                break
            texts.append(text)
        if not texts:
            return
        if await listener.write(texts):
            self._position += len(texts)
        else:  # for the first piece of a message
            self._refusals += 1


def _is_cut(call: ModelCall, usage: Usage) -> bool:
    """A low count of the prompt is the only sign."""
    estimated = call.estimate()
    is_counted = usage.input_tokens > 0 and estimated > MIN_JUDGED_TOKENS
    return is_counted and is_cut(estimated, usage.input_tokens)


def _as_it_is(body: Body) -> Body:
    return body


def _empty_stream() -> Refused:
    """Asked without a stream, the upstream answers with the reason."""
    refused = Refused("The model's stream was empty.", is_transient=True)
    refused.is_about_streaming = True
    return refused


def _without_stream(body: Body, refused: Refused) -> tuple[Body, list[ProtocolDeviation]]:
    """The last resort for a refusal that names no field: the whole answer at once."""
    if not refused.is_about_streaming or not body["stream"]:
        raise refused
    less = {name: value for name, value in body.items() if name != "stream_options"}
    return less | {"stream": False}, [ProtocolDeviation("no streaming")]
