"""One round with the model: as many requests as it takes to get an answer that is whole.

What was said stays said. A request that broke before its first word is made again; an answer that broke
in its text is continued; a call that broke is not run, and the model is told. Then the next model has a try.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from gateway_app.agent.answer_buffer import AnswerBuffer, continued, interrupted
from gateway_app.agent.context import as_note
from gateway_app.agent.events import (
    Cut,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.stream_filters import clean_event, until_stop
from responses_app.protocol.token_estimate import tokens_of

MAX_CONTINUATIONS = 4  # of each model
MAX_DROPS = 4
SPLIT_AFTER_DROPS = 2  # of the same tool: it will not fit the next time either
BACKOFF_SECS = 0.5  # before the first retry; doubled for each further one
MAX_PAUSE_SECS = 60.0  # whatever the upstream asks for: somebody is waiting

DROPPED = "Your call of {tool} was cut off before its arguments were complete, so it was not run."
RESEND = " Make the call again if it is still needed."
SPLIT = (
    " It keeps being cut off: do not send the same call again. Split the content over several smaller calls, "
    "or use several `patch` calls, and keep the arguments of each call under about 8,000 tokens."
)


async def ask(
    providers: Sequence[Provider], call: ModelCall, retries: int, backoff_secs: float = BACKOFF_SECS
) -> AsyncGenerator[ModelEvent]:
    """The deltas of every request, with a Cut where one broke off, and one ModelFinished with the usage of all."""
    asking = _Round(call, retries, backoff_secs)
    for provider in providers:
        asking.turn_to_next()
        while not asking.is_spent:
            async with aclosing(asking.request(provider)) as events:
                async for event in events:
                    yield event
            end = asking.settle()
            if asking.is_broken and asking.said.has_deltas:
                yield Cut()
            if end is not None:
                yield end
                return
            if not asking.is_spent:
                await asyncio.sleep(asking.pause_secs)
    yield asking.give_up()


class _Round:
    """What was asked and said so far, and what is left to try."""

    def __init__(self, call: ModelCall, retries: int, backoff_secs: float) -> None:
        self.said = AnswerBuffer()  # in the last request
        self.is_spent = self.is_broken = False  # this model; the last request
        self.pause_secs = self._retry_after_secs = 0.0
        self._call = call
        self._retries, self._backoff_secs = retries, backoff_secs
        self._usage, self._uncounted = Usage(), 0
        self._failure = ModelFailed("There is no model to ask.")
        self._has_deltas = False
        self._quirks: set[str] = set()
        self._retried = self._continued = self._dropped = self._dropped_in_a_row = 0
        self._last_dropped = ""

    def turn_to_next(self) -> None:
        self.is_spent = False
        self._retried = self._continued = 0

    async def request(self, provider: Provider) -> AsyncGenerator[ModelEvent]:
        """What is said in one request, however it ends."""
        self.said, self.is_broken, self._retry_after_secs = AnswerBuffer(), False, 0.0
        call = replace(self._call, max_output_tokens=self._tokens_left())
        try:
            async with aclosing(until_stop(provider.stream(call), call)) as events:
                async for raw in events:
                    event = clean_event(raw)
                    self.said.add(event)
                    if not isinstance(event, ModelFinished) and self._is_new(event):
                        yield event
            self._usage += self.said.finish.usage
        except ModelFailed as failure:
            self.is_broken, self._failure = True, failure
            self._retry_after_secs = failure.retry_after or 0.0
            self._usage += failure.usage
            self._uncounted += 0 if failure.usage.output_tokens else tokens_of(self.said.chars)
        self._has_deltas |= self.said.has_deltas

    def _is_new(self, event: ModelEvent) -> bool:
        """A quirk is worth telling once."""
        if not isinstance(event, ProtocolDeviation):
            return True
        is_new = event.name not in self._quirks
        self._quirks.add(event.name)
        return is_new

    def settle(self) -> ModelFinished | None:
        """The end of the round, unless there is something left to ask."""
        if self.is_broken and not self._failure.is_transient:
            raise self._failed()
        if not self.is_broken and not self._is_cut_by_length():
            return replace(self.said.finish, usage=self._usage, uncounted=self._uncounted)
        self.is_broken = True
        if self.said.calls():
            notes = tuple(as_note(self._count_drop(cut.name)) for cut in self.said.cut_calls())
            return replace(self._finished("tool_calls"), notes=notes)
        if self._tokens_left() == 0:
            return self._finished("length")
        if self.said.cut_calls():
            return self._settle_drop(self.said.cut_calls()[-1].name)
        if self.said.has_deltas:
            return self._settle_cut()
        self._settle_silence()
        return None

    def give_up(self) -> ModelFinished:
        if not self._has_deltas:
            raise self._failed()
        return self._cut_for_good()

    def _cut_for_good(self) -> ModelFinished:
        return self._finished("upstream_cut", self._failure.message)

    def _finished(self, reason: str, message: str = "") -> ModelFinished:
        return ModelFinished(reason, self._usage, message, uncounted=self._uncounted)

    def _tokens_left(self) -> int | None:
        """The limit is one for all requests; what broke off is counted by its text."""
        limit = self._call.max_output_tokens
        return (
            None if limit is None else max(0, limit - self._usage.output_tokens - self._uncounted)
        )

    def _failed(self) -> ModelFailed:
        self._failure.usage = self._usage
        return self._failure

    def _is_cut_by_length(self) -> bool:
        """In or after a call, by a limit that the client did not set."""
        has_calls = bool(self.said.cut_calls() or self.said.calls())
        return (
            self.said.finish.reason == "length"
            and has_calls
            and self._call.max_output_tokens is None
        )

    def _settle_drop(self, tool: str) -> ModelFinished | None:
        note = self._count_drop(tool)
        if self._dropped >= MAX_DROPS:
            message = f"The model's call of {tool} was cut off {self._dropped} times in a row and was not run."
            return self._finished("tool_call_dropped", message)
        self._go_on(interrupted(self._call, self.said, note))
        return None

    def _count_drop(self, tool: str) -> str:
        """What the model is told about it."""
        self._dropped += 1
        self._dropped_in_a_row = self._dropped_in_a_row + 1 if tool == self._last_dropped else 1
        self._last_dropped = tool
        advice = SPLIT if self._dropped_in_a_row >= SPLIT_AFTER_DROPS else RESEND
        return DROPPED.format(tool=f"`{tool}`") + advice

    def _settle_cut(self) -> ModelFinished | None:
        if self._call.is_formatted and self.said.items():
            return self._cut_for_good()
        self.is_spent = self._continued >= MAX_CONTINUATIONS
        self._continued += 1
        self._go_on(continued(self._call, self.said))
        return None

    def _settle_silence(self) -> None:
        self.is_spent = self._retried >= self._retries
        self._call = replace(self._call, is_retry=True)
        backoff = self._backoff_secs * 2**self._retried * random.uniform(0.5, 1)  # noqa: S311
        self.pause_secs = min(self._retry_after_secs + backoff, MAX_PAUSE_SECS)
        self._retried += 1

    def _go_on(self, call: ModelCall) -> None:
        self._call, self._retried = call, 0
        self.pause_secs = min(self._retry_after_secs, MAX_PAUSE_SECS)
