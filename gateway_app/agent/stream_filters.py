"""What every model's stream passes through: cleaned text, and stop sequences."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Any

from gateway_app.agent.events import ModelEvent, ModelFailed, ModelFinished, TextDelta, Usage
from gateway_app.agent.model_call import ModelCall
from responses_app.protocol.items import TokenLogprob
from responses_app.protocol.text_buffer import clean_text
from responses_app.protocol.token_estimate import tokens_of


def clean_event(event: ModelEvent) -> ModelEvent:
    """Without the characters that databases and JSON encoders refuse."""
    if isinstance(event, TextDelta):  # the most frequent event, and rarely unclean
        text = clean_text(event.text)
        if text is event.text and not event.logprobs:
            return event
        return TextDelta(text, tuple(clean(list(event.logprobs))))
    if isinstance(event, ModelFinished):
        return event
    cleaned = {field.name: clean(getattr(event, field.name)) for field in fields(event)}
    return replace(event, **cleaned)


def clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    return value


def until_stop(events: AsyncGenerator[ModelEvent], call: ModelCall) -> AsyncGenerator[ModelEvent]:
    """The answer up to the first stop sequence in its text.

    A model server that knows stop sequences ends there itself; for the others the rest of the
    stream is never read.
    """
    stops = call.chat_extras.get("stop")
    if not stops:
        return events
    return _cut_at_stop(events, call, _StopFilter(stops))


async def _cut_at_stop(
    events: AsyncGenerator[ModelEvent], call: ModelCall, stop_filter: "_StopFilter"
) -> AsyncGenerator[ModelEvent]:
    async with aclosing(events):
        try:
            async for event in events:
                if not isinstance(event, TextDelta):
                    for delta in stop_filter.release():
                        yield delta
                    yield event
                    continue
                for delta in stop_filter.feed(event):
                    yield delta
                if stop_filter.is_stopped:
                    yield ModelFinished("stop", stop_filter.usage(call))
                    return
        except ModelFailed:
            for delta in stop_filter.release():
                yield delta
            raise


class _StopFilter:
    """Holds text back for as long as it may be the beginning of a stop sequence."""

    def __init__(self, stops: list[str]) -> None:
        self.is_stopped = False
        self._stops = stops
        self._held = ""
        self._emitted_chars = 0
        self._logprob_chars = 0  # of the tokens whose log probabilities were emitted
        self._logprobs: list[TokenLogprob] = []  # of tokens that are not emitted yet

    def feed(self, delta: TextDelta) -> list[TextDelta]:
        text = self._held + delta.text
        self._logprobs += delta.logprobs
        end = len(text)
        for stop in self._stops:
            position = text.find(stop)
            if 0 <= position < end:
                end = position
                self.is_stopped = True
        if self.is_stopped:
            self._held = ""
            return self._emit(text[:end])
        end -= self._held_chars(text)
        self._held = text[end:]
        return self._emit(text[:end])

    def release(self) -> list[TextDelta]:
        held, self._held = self._held, ""
        return self._emit(held)

    def usage(self, call: ModelCall) -> Usage:
        """An estimate: the upstream sends its count at the end, which is not read."""
        return Usage(call.input_tokens(), tokens_of(self._emitted_chars), is_estimated=True)

    def _emit(self, text: str) -> list[TextDelta]:
        if not text:
            return []
        self._emitted_chars += len(text)
        logprobs: list[TokenLogprob] = []
        while self._logprobs:
            token_chars = len(self._logprobs[0]["token"])
            if self._logprob_chars + token_chars > self._emitted_chars:
                break
            self._logprob_chars += token_chars
            logprobs.append(self._logprobs.pop(0))
        return [TextDelta(text, tuple(logprobs))]

    def _held_chars(self, text: str) -> int:
        """How many of the last characters begin a stop sequence."""
        longest = max(len(stop) for stop in self._stops) - 1
        for size in range(min(longest, len(text)), 0, -1):
            ending = text[-size:]
            if any(stop.startswith(ending) for stop in self._stops):
                return size
        return 0
