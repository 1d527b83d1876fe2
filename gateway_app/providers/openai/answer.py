"""What the protocols of upstreams have in common: a request, and an answer that may break off."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway_app.agent.events import (
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    Quirk,
    TextDelta,
    Usage,
)
from gateway_app.providers.openai.calls import Calls
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient
from gateway_app.providers.openai.logprobs import read_logprobs
from gateway_app.providers.openai.sse import Event, WholeAnswer, cut_off

MAX_UPSTREAM_ID_CHARS = 200
CUT_REASONS = ("length", "content_filter")


class Answer(ABC):
    """An answer as it comes in; every event of the upstream becomes any number of ours."""

    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        self.reason = ""  # how it ended, once the upstream says so
        self.usage = Usage()
        self.calls = Calls(call)
        self.wants_logprobs = call.wants_logprobs
        self.upstream = upstream
        self._upstream_ids: dict[str, None] = {}

    def is_last(self, event: Event) -> bool:
        return False

    def note_id(self, given: object) -> None:
        """Under this name somebody finds the answer in the upstream's own records."""
        if isinstance(given, str) and given:
            self._upstream_ids[given[:MAX_UPSTREAM_ID_CHARS]] = None

    def text(self, said: str, logprobs: object) -> TextDelta:
        """Some servers send them unasked."""
        return TextDelta(said, read_logprobs(logprobs) if self.wants_logprobs else ())

    @abstractmethod
    def read(self, event: Event) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def has_nameless_call(self) -> bool: ...

    @abstractmethod
    def is_marked_finished(self, *, is_clean: bool) -> bool:
        """Is there content, and a sign other than a reason that nothing of it is missing?"""

    def understand(self, event: Event) -> Iterator[ModelEvent]:
        try:
            yield from (
                self.read_whole(event) if isinstance(event, WholeAnswer) else self.read(event)
            )
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise cut_off("an event makes no sense") from None

    def end(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        """After the last event or a failure: what is still open, and how it ended or why it broke."""
        flaw = self._flaw(failure)
        yield from self.calls.end(is_cut=flaw is not None or self.reason in CUT_REASONS)
        if flaw is not None:
            flaw.usage = self.usage
            raise flaw
        if not self.reason:
            yield Quirk("no end of the answer")
        reason = self.reason or "stop"
        reason = "tool_calls" if reason == "stop" and self.calls.count else reason
        yield ModelFinished(reason, self.usage, upstream_ids=tuple(self._upstream_ids))

    def _flaw(self, failure: ModelFailed | None) -> ModelFailed | None:
        if self.reason == "error":
            return ModelFailed("The model ended its answer with an error.", is_transient=True)
        is_finished = self.reason or (
            self.is_marked_finished(is_clean=failure is None)
            and self.calls.are_whole  # or a call was cut
        )
        if not is_finished:
            return failure or cut_off("it ended without a finish reason")
        return cut_off("it has a call without a name") if self.has_nameless_call() else None


@dataclass(frozen=True)
class Protocol:
    body: Callable[[ModelCall, Upstream], dict[str, Any]]
    open: Callable[
        [UpstreamClient, dict[str, Any], dict[str, Any]], Opening
    ]  # with a body and headers
    answer: Callable[[ModelCall, Upstream], Answer]
