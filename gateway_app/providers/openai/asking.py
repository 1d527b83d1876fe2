"""One request to an upstream, and its answer as the events of a model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from gateway_app.agent.budget import is_cut
from gateway_app.agent.events import ModelEvent, ModelFailed, ProtocolDeviation, Usage
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.text_listener import TextListener
from gateway_app.providers.openai.answer import Answer
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.event_reader import Takes
from gateway_app.providers.openai.exchange import Exchange
from gateway_app.providers.openai.sse import Event
from gateway_app.providers.openai.text_calls import with_text_calls
from gateway_app.providers.openai.transport import FRESH_CONNECTION
from responses_app.metrics import UpstreamRequest

CUT_PROMPT = "prompt cut by the upstream: set a larger context window there"
MAX_REFUSALS = 8  # of text by a listener; the rest of that read is sent as events
MIN_JUDGED_TOKENS = 1_000  # the estimate of a shorter prompt may be far off


def ask(exchange: Exchange, call: ModelCall) -> AsyncGenerator[ModelEvent]:
    """The events of the answer; raises Refused where another body may be taken."""
    if exchange.client.upstream.preset.writes_calls_as_text:
        seen = replace(call, text_listener=None)  # each text may begin a call
        return with_text_calls(_send(exchange, seen), call)
    return _send(exchange, call)


async def _send(exchange: Exchange, call: ModelCall) -> AsyncGenerator[ModelEvent]:
    client = exchange.client
    answer = exchange.answer
    failure: ModelFailed | None = None
    headers = client.headers
    if call.is_retry:
        headers = headers | FRESH_CONNECTION
    with UpstreamRequest(client.upstream.name, client.upstream.model) as request:
        try:
            takes = _text_taker(answer, call.text_listener)
            batches = exchange.events(headers, call.input_tokens(), takes)
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


def _text_taker(answer: Answer, listener: TextListener | None) -> Takes | None:
    """Takes the reads in which there is only text that the listener writes at once."""
    if listener is None:
        return None
    plain_text = answer.plain_text
    write_now = listener.write_now

    def takes(batch: list[Event]) -> bool:
        texts: list[str] = []
        for event in batch:
            text = plain_text(event)
            if text is None:
                return False
            texts.append(text)
        return write_now(texts)

    return takes


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


def _empty_stream() -> Refused:
    """Asked without a stream, the upstream answers with the reason."""
    refused = Refused("The model's stream was empty.", is_transient=True)
    refused.is_about_streaming = True
    return refused
