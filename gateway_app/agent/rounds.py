"""One round with the model: as many requests as it takes to get a complete answer.

Text that was sent to the client stays. A request that broke before its first event is sent again;
an answer that broke in its text is continued; a call that broke is not run, and the model gets a
note about it. Then the next model is asked, at once where another try of this one is of no use.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from gateway_app.agent.answer_buffer import AnswerBuffer, continued, interrupted
from gateway_app.agent.answer_text import listener_of
from gateway_app.agent.arguments import with_sent_arguments
from gateway_app.agent.context import as_note
from gateway_app.agent.dropped_calls import DroppedCalls
from gateway_app.agent.events import (
    AnswerStarted,
    Cut,
    Delta,
    ItemState,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    RoundEvent,
    RoundFinished,
    UpstreamAbandoned,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.retries import Retries
from gateway_app.agent.stream_filters import clean_event, until_stop
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import tokens_of

MAX_CONTINUATIONS = 4  # of each model
BACKOFF_SECS = 0.5  # before the first retry; doubled for each further one


async def ask(
    providers: Sequence[Provider],
    call: ModelCall,
    retries: int,
    answer: AnswerBuffer,
    backoff_secs: float = BACKOFF_SECS,
) -> AsyncGenerator[RoundEvent]:
    """The deltas of every request, with a Cut where one broke off, and one RoundFinished.

    The answer is collected in the buffer, which is the caller's.
    """
    current = _Round(call, retries, answer, backoff_secs)
    for number, provider in enumerate(providers):
        if number:
            yield current.fallback(number)
        is_last = number == len(providers) - 1
        current.begin_provider(provider.identity, is_first=number == 0, is_last=is_last)
        while not current.is_exhausted:
            request = current.begin_request()
            try:
                async with aclosing(until_stop(provider.stream(request), request)) as events:
                    async for raw_event in events:
                        for event in current.receive(raw_event):
                            yield event
                current.end_request()
            except ModelFailed as failure:
                current.fail_request(failure)
            for end_event in current.settle():
                yield end_event
            if current.is_finished:
                return
            if not current.is_exhausted:
                await asyncio.sleep(current.retries.pause_secs)
    yield current.give_up()


class _Round:
    """What was asked and answered up to now, and what is left to try."""

    def __init__(
        self, call: ModelCall, retries: int, answer: AnswerBuffer, backoff_secs: float
    ) -> None:
        self.is_exhausted = False  # this model
        self.is_broken = False  # the last request
        self.is_finished = False
        self._has_started = False  # the answer to the last request
        self._is_first = True  # the budget of the call is that of the first model
        self._is_last = True  # there is no model after this one
        self._provider = ""  # its identity
        self._call = call
        self._request = call
        self.retries = Retries(retries, backoff_secs)
        self._retry_after_secs = 0.0  # as the upstream asks after the last request
        self._answer = answer
        self._answer.runs_upstream = call.resume is not None
        self._has_deltas = False  # in any request
        self._usage = Usage()
        self._failure = ModelFailed("There is no model to ask.")
        self._deviations: set[str] = set()
        self._continued = 0
        self._dropped = DroppedCalls()

    def begin_provider(self, identity: str, *, is_first: bool, is_last: bool) -> None:
        self._provider = identity
        self.is_exhausted = False
        self._is_first = is_first
        self._is_last = is_last
        self.retries.begin()
        self._continued = 0

    def fallback(self, number: int) -> ProtocolDeviation:
        """For the operators: which of the fallback models is asked, and why."""
        cause = self._failure.model_fault or "no answer"
        return ProtocolDeviation(f"fallback model {number}: {cause}")

    def begin_request(self) -> ModelCall:
        self._answer.begin_request(self._provider)
        self.is_broken = False
        self._has_started = False
        self._retry_after_secs = 0.0
        self._request = replace(
            self._call,
            items=with_sent_arguments(self._call.items),
            max_output_tokens=self._tokens_left(),
            text_listener=listener_of(self._call, self._answer),
        )
        return self._request

    def receive(self, raw_event: ModelEvent) -> tuple[Delta | AnswerStarted, ...]:
        """Add an event to the answer; empty if the client gets nothing of it."""
        event = clean_event(raw_event)
        self._answer.add(event)
        if isinstance(event, ModelFinished) or self._is_without_item(event):
            return ()
        if isinstance(event, ProtocolDeviation):
            if event.name in self._deviations:
                return ()
            self._deviations.add(event.name)
        received: tuple[Delta, ...] = (event,)
        if self._answer.is_unmarked:
            received = (event, self._answer.mark())
        if self._has_started or not self._answer.has_deltas:
            return received
        self._has_started = True
        return AnswerStarted(self._request.input_tokens()), *received

    def _is_without_item(self, event: ModelEvent) -> bool:
        return isinstance(event, ItemState) and not self._answer.has_deltas

    def end_request(self) -> None:
        counted = self._answer.finish.usage
        # The usage of a formatted answer is that of several requests.
        if self._is_first and not counted.is_estimated and not self._call.is_formatted:
            correction = self._request.budget.correction
            correction.learn(self._request.estimate(), counted.input_tokens)
        self._usage += self._spent(counted)
        self._has_deltas |= self._answer.has_deltas

    def fail_request(self, failure: ModelFailed) -> None:
        self.is_broken = True
        self._failure = failure
        self._retry_after_secs = failure.retry_after or 0.0
        if self._answer.has_deltas:  # without any, a refusal costs nothing
            self._usage += self._spent(failure.usage)
        else:
            self._usage += failure.usage
        self._has_deltas |= self._answer.has_deltas

    def settle(self) -> tuple[Cut | UpstreamAbandoned | RoundFinished, ...]:
        """How the request ended; this model or the next one is asked if the round is not finished."""
        is_refused = self.is_broken and not self._failure.is_transient
        if is_refused and not self._can_next_model_answer():
            raise self._failed()
        finished = self._settle()
        self.is_exhausted = self.is_exhausted or is_refused
        ends: list[Cut | UpstreamAbandoned | RoundFinished] = []
        if self.is_broken and self._answer.has_deltas:
            ends.append(Cut())
        if finished is not None:
            self.is_finished = True
            ends.append(finished)
        elif self._abandons_upstream():
            ends.append(UpstreamAbandoned())
        return tuple(ends)

    def _settle(self) -> RoundFinished | None:
        if not self.is_broken and not self._is_cut_by_length():
            finish = self._answer.finish
            return self._finished(finish.reason, upstream_ids=finish.upstream_ids)
        self.is_broken = True
        cut_names = [call.name for call in self._answer.cut_calls()]
        if self._answer.calls():
            notes: list[Item] = []
            for name in cut_names:
                notes.append(as_note(self._dropped.add(name)))
            return self._finished("tool_calls", notes=tuple(notes))
        if self._tokens_left() == 0:
            return self._finished("length")
        if cut_names:
            return self._settle_drop(cut_names[-1])
        if self._answer.has_deltas:
            return self._settle_cut()
        self._settle_silence()
        return None

    def _abandons_upstream(self) -> bool:
        """Does another answer replace one that may still run at its upstream?"""
        if self.is_exhausted:
            self._call = replace(self._call, resume=None)
        if self._call.resume is not None or not self._answer.runs_upstream:
            return False
        self._answer.runs_upstream = False
        return True

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
        return RoundFinished(reason, self._usage, message, upstream_ids, notes)

    def _spent(self, counted: Usage) -> Usage:
        """By the last request; what the upstream did not count is estimated."""
        if counted.input_tokens and counted.output_tokens:
            return counted
        return counted.or_estimate(self._request.input_tokens(), tokens_of(self._answer.chars))

    def _tokens_left(self) -> int | None:
        """One limit applies to all requests."""
        limit = self._call.max_output_tokens
        if limit is None:
            return None
        return max(0, limit - self._usage.output_tokens)

    def _failed(self) -> ModelFailed:
        self._failure.usage = self._usage
        return self._failure

    def _is_cut_by_length(self) -> bool:
        """In or after a call, by a limit that the client did not set."""
        if self._answer.finish.reason != "length" or self._call.max_output_tokens is not None:
            return False
        return bool(self._answer.cut_calls() or self._answer.calls())

    def _settle_drop(self, tool: str) -> RoundFinished | None:
        note = self._dropped.add(tool)
        if self._dropped.are_too_many:
            times = self._dropped.count
            message = f"The model's call of {tool} was cut off {times} times in a row and not run."
            return self._finished("tool_call_dropped", message)
        self._ask_again(interrupted(self._call, self._answer, note))
        return None

    def _can_next_model_answer(self) -> bool:
        if self._is_last or self._failure.model_fault is None:
            return False
        return not self._is_cut_document()

    def _is_cut_document(self) -> bool:
        """Two pieces do not make one JSON document."""
        return self._call.is_formatted and bool(self._answer.request_items())

    def _settle_cut(self) -> RoundFinished | None:
        if self._is_cut_document():
            return self._finished("upstream_cut", self._failure.message)
        self.is_exhausted = self._continued >= MAX_CONTINUATIONS
        self._continued += 1
        self._ask_again(continued(self._call, self._answer))
        return None

    def _settle_silence(self) -> None:
        self._call = replace(self._call, is_retry=True)
        self.is_exhausted = not self.retries.repeats(
            self._retry_after_secs, self._failure.patience_secs
        )

    def _ask_again(self, call: ModelCall) -> None:
        self._call = call
        self.retries.begin()
        self.is_exhausted = self.is_exhausted or not self.retries.waits(self._retry_after_secs)
