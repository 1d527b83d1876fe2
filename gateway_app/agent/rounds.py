"""One round with the model: as many requests as it takes to get a complete answer.

Text that was sent to the client stays. A request that broke before its first event is sent again;
an answer that broke in its text is continued; a call that broke is not run, and a note to the model
says so. Then the next model is asked.
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
    Delta,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    RoundFinished,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.stream_filters import clean_event, until_stop
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import tokens_of

MAX_CONTINUATIONS = 4  # of each model
MAX_DROPS = 4
SPLIT_AFTER_DROPS = 2  # of the same tool: the call would be too long the next time too
BACKOFF_SECS = 0.5  # before the first retry; doubled for each further one
MAX_PAUSE_SECS = 60.0  # whatever the upstream asks for: a client is waiting

DROPPED = "Your call of `{tool}` was cut off before its arguments were complete, so it was not run."
RESEND = " Make the call again if it is still needed."
SPLIT = (
    " It keeps being cut off: do not send the same call again. "
    "Split the content over several smaller calls, or use several `patch` calls, "
    "and keep the arguments of each call under about 8,000 tokens."
)


async def ask(
    providers: Sequence[Provider],
    call: ModelCall,
    retries: int,
    answer: AnswerBuffer,
    backoff_secs: float = BACKOFF_SECS,
) -> AsyncGenerator[Delta | RoundFinished]:
    """The deltas of every request, with a Cut where one broke off, and one RoundFinished.

    The answer is collected in the buffer, which is the caller's.
    """
    current = _Round(call, retries, answer, backoff_secs)
    for provider in providers:
        current.begin_provider(provider.identity)
        while not current.is_exhausted:
            request = current.begin_request()
            try:
                async with aclosing(until_stop(provider.stream(request), request)) as events:
                    async for raw_event in events:
                        event = current.receive(raw_event)
                        if event is not None:
                            yield event
                            if answer.is_unmarked:
                                yield answer.mark()
                current.end_request()
            except ModelFailed as failure:
                current.fail_request(failure)
            finished = current.settle()
            if current.is_broken and answer.has_deltas:
                yield Cut()
            if finished is not None:
                yield finished
                return
            if not current.is_exhausted:
                await asyncio.sleep(current.pause_secs)
    yield current.give_up()


class _Round:
    """What was asked and answered up to now, and what is left to try."""

    def __init__(
        self, call: ModelCall, retries: int, answer: AnswerBuffer, backoff_secs: float
    ) -> None:
        self.is_exhausted = False  # this model
        self.is_broken = False  # the last request
        self.pause_secs = 0.0
        self._call = call
        self._provider = ""
        self._retries = retries
        self._backoff_secs = backoff_secs
        self._retry_after_secs = 0.0
        self._answer = answer
        self._has_deltas = False  # in any request
        self._usage = Usage()
        self._uncounted = 0
        self._failure = ModelFailed("There is no model to ask.")
        self._deviations: set[str] = set()
        self._retried = 0
        self._continued = 0
        self._dropped = 0
        self._dropped_in_a_row = 0
        self._last_dropped = ""

    def begin_provider(self, identity: str) -> None:
        self._provider = identity
        self.is_exhausted = False
        self._retried = 0
        self._continued = 0

    def begin_request(self) -> ModelCall:
        self._answer.begin_request(self._provider)
        self.is_broken = False
        self._retry_after_secs = 0.0
        return replace(self._call, max_output_tokens=self._tokens_left())

    def receive(self, raw_event: ModelEvent) -> Delta | None:
        """Add an event to the answer; None if the client gets nothing of it."""
        event = clean_event(raw_event)
        self._answer.add(event)
        if isinstance(event, ModelFinished):
            return None
        if isinstance(event, ProtocolDeviation):
            if event.name in self._deviations:
                return None
            self._deviations.add(event.name)
        return event

    def end_request(self) -> None:
        self._usage += self._answer.finish.usage
        self._has_deltas |= self._answer.has_deltas

    def fail_request(self, failure: ModelFailed) -> None:
        self.is_broken = True
        self._failure = failure
        self._retry_after_secs = failure.retry_after or 0.0
        self._usage += failure.usage
        if not failure.usage.output_tokens:
            self._uncounted += tokens_of(self._answer.chars)
        self._has_deltas |= self._answer.has_deltas

    def settle(self) -> RoundFinished | None:
        """The end of the round; None if the model is asked again."""
        if self.is_broken and not self._failure.is_transient:
            raise self._failed()
        if not self.is_broken and not self._is_cut_by_length():
            finish = self._answer.finish
            return self._finished(finish.reason, upstream_ids=finish.upstream_ids)
        self.is_broken = True
        cut_names = [call.name for call in self._answer.cut_calls()]
        if self._answer.calls():
            notes: list[Item] = []
            for name in cut_names:
                notes.append(as_note(self._count_drop(name)))
            return self._finished("tool_calls", notes=tuple(notes))
        if self._tokens_left() == 0:
            return self._finished("length")
        if cut_names:
            return self._settle_drop(cut_names[-1])
        if self._answer.has_deltas:
            return self._settle_cut()
        self._settle_silence()
        return None

    def give_up(self) -> RoundFinished:
        if not self._has_deltas:
            raise self._failed()
        return self._finished("upstream_cut", self._failure.message)

    def _finished(
        self,
        reason: str,
        message: str = "",
        upstream_ids: tuple[str, ...] = (),
        notes: tuple[Item, ...] = (),
    ) -> RoundFinished:
        return RoundFinished(reason, self._usage, message, upstream_ids, notes, self._uncounted)

    def _tokens_left(self) -> int | None:
        """One limit applies to all requests; an answer that broke off is counted by its text."""
        limit = self._call.max_output_tokens
        if limit is None:
            return None
        return max(0, limit - self._usage.output_tokens - self._uncounted)

    def _failed(self) -> ModelFailed:
        self._failure.usage = self._usage
        return self._failure

    def _is_cut_by_length(self) -> bool:
        """In or after a call, by a limit that the client did not set."""
        if self._answer.finish.reason != "length" or self._call.max_output_tokens is not None:
            return False
        return bool(self._answer.cut_calls() or self._answer.calls())

    def _settle_drop(self, tool: str) -> RoundFinished | None:
        note = self._count_drop(tool)
        if self._dropped >= MAX_DROPS:
            times = self._dropped
            message = f"The model's call of {tool} was cut off {times} times in a row and not run."
            return self._finished("tool_call_dropped", message)
        self._ask_again(interrupted(self._call, self._answer, note))
        return None

    def _count_drop(self, tool: str) -> str:
        """The note to the model."""
        if tool != self._last_dropped:
            self._dropped_in_a_row = 0
        self._dropped += 1
        self._dropped_in_a_row += 1
        self._last_dropped = tool
        note = DROPPED.format(tool=tool)
        if self._dropped_in_a_row >= SPLIT_AFTER_DROPS:
            return note + SPLIT
        return note + RESEND

    def _settle_cut(self) -> RoundFinished | None:
        if self._call.is_formatted and self._answer.request_items():
            return self._finished("upstream_cut", self._failure.message)
        self.is_exhausted = self._continued >= MAX_CONTINUATIONS
        self._continued += 1
        self._ask_again(continued(self._call, self._answer))
        return None

    def _settle_silence(self) -> None:
        self.is_exhausted = self._retried >= self._retries
        self._call = replace(self._call, is_retry=True)
        backoff = self._backoff_secs * 2**self._retried * random.uniform(0.5, 1)  # noqa: S311
        self.pause_secs = min(self._retry_after_secs + backoff, MAX_PAUSE_SECS)
        self._retried += 1

    def _ask_again(self, call: ModelCall) -> None:
        self._call = call
        self._retried = 0
        self.pause_secs = min(self._retry_after_secs, MAX_PAUSE_SECS)
