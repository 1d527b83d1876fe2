"""What the protocols of upstreams have in common: a request, and an answer that may break off."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.think_tags import ThinkTags
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient
from gateway_app.providers.openai.sse import Event, WholeAnswer, cut_off
from gateway_app.providers.openai.state import identity_of
from responses_app.protocol.ids import new_call_id
from responses_app.protocol.items import CALLS, TokenLogprob

MAX_UPSTREAM_ID_CHARS = 200
MAX_ID_CHARS = MAX_NAME_CHARS = 200  # what the ledger of tool calls stores
# What the code that reads an event raises where a part of it is of another type than it should be.
_NONSENSE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
CUT_REASONS = ("length", "content_filter")


class CallTracker:
    """The calls of one answer: their ids are unique in the turn, and no item is between them."""

    def __init__(self, call: ModelCall) -> None:
        known = {item["call_id"] for item in call.items if item.get("type") in CALLS}
        self._used_ids = known | call.used_call_ids
        self._open: dict[str, list[str]] = {}  # call id -> the pieces of its arguments
        self._call = call
        self._custom_names = {
            tool["name"] for tool in call.client_tools if tool["type"] == "custom"
        }
        self._custom_ids: set[str] = set()
        self._deferred: list[ModelEvent] = []
        self.count = 0

    def emit(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        """The event, or nothing while a call is open: in the log the event would close the call.

        A deferred event is sent when the open calls have ended.
        """
        if not self._open:
            return (event,)
        self._deferred.append(event)
        return ()

    def start(self, given_id: str, name: str) -> CallStarted:
        """Some servers count their ids anew in every answer; the ledger needs one id per call."""
        if not isinstance(name, str):
            raise TypeError("the name of a call is no text")
        call_id = given_id
        if not 0 < len(given_id) <= MAX_ID_CHARS or given_id in self._used_ids:
            call_id = new_call_id()
        self._used_ids.add(call_id)
        self._open[call_id] = []
        self.count += 1
        name = self._call.public_name(name)
        kind = "function_call"
        if name in self._custom_names:
            kind = "custom_tool_call"
            self._custom_ids.add(call_id)
        return CallStarted(call_id, name[:MAX_NAME_CHARS], kind)

    def arguments(self, call_id: str, delta: str) -> Iterator[ModelEvent]:
        if delta and call_id in self._open:
            self._open[call_id].append(delta)
            yield CallArguments(call_id, delta)

    def finish(self, call_id: str) -> Iterator[ModelEvent]:
        if call_id not in self._open:
            return
        if not self._open.pop(call_id) and call_id not in self._custom_ids:
            yield CallArguments(call_id, "{}")
        yield CallFinished(call_id)
        if not self._open:
            yield from self._release()

    @property
    def is_any_open(self) -> bool:
        return bool(self._open)

    @property
    def are_whole(self) -> bool:
        return all(self._is_whole(call_id) for call_id in self._open)

    def end(self, *, is_cut: bool) -> Iterator[ModelEvent]:
        """Where the model was cut off, a call whose arguments are not complete ends incomplete."""
        for call_id in list(self._open):
            if is_cut and not self._is_whole(call_id):
                del self._open[call_id]
                yield CallFinished(call_id, is_cut=True)
            else:
                yield from self.finish(call_id)
        yield from self._release()

    def _is_whole(self, call_id: str) -> bool:
        return is_json_object("".join(self._open[call_id]))

    def _release(self) -> Iterator[ModelEvent]:
        deferred, self._deferred = self._deferred, []
        yield from deferred


class Answer(ABC):
    """An answer as it comes in; every event of the upstream becomes any number of ours."""

    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        self.reason = ""  # how it ended, once the upstream sends that
        self.usage = Usage()
        self.calls = CallTracker(call)
        self.wants_logprobs = call.wants_logprobs
        self.upstream = upstream
        self.identity = identity_of(upstream)
        self._upstream_ids: dict[str, None] = {}
        self._think_tags = ThinkTags()

    def is_last(self, event: Event) -> bool:
        return False

    def add_upstream_id(self, given: object) -> None:
        """With this id an operator finds the answer in the upstream's own records."""
        if isinstance(given, str) and given:
            self._upstream_ids[given[:MAX_UPSTREAM_ID_CHARS]] = None

    def text_delta(self, text: str, logprobs: object) -> TextDelta:
        """Some servers send log probabilities without being asked; those are dropped."""
        if logprobs and self.wants_logprobs:
            return TextDelta(text, read_logprobs(logprobs))
        return TextDelta(text)

    def emit_text(self, delta: TextDelta) -> Iterable[ModelEvent]:
        if self._think_tags.is_over:
            return self.calls.emit(delta)
        return self._emit_all(self._think_tags.feed(delta))

    def end_text(self) -> Iterable[ModelEvent]:
        """Something else follows the text of a message, or nothing."""
        if self._think_tags.is_over:
            return ()
        return self._emit_all(self._think_tags.release())

    def begin_message(self) -> None:
        self._think_tags = ThinkTags()

    def _emit_all(self, events: list[ModelEvent]) -> Iterator[ModelEvent]:
        for event in events:
            yield from self.calls.emit(event)

    def plain_text(self, event: Event) -> str | None:
        """The text of an event that has nothing else, where no part of it is held back."""
        if not self._think_tags.is_over or self.calls.is_any_open:
            return None
        return self.text_alone(event)

    def text_alone(self, event: Event) -> str | None:
        return None

    @abstractmethod
    def read(self, event: Event) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def has_output(self) -> bool: ...

    @abstractmethod
    def has_nameless_call(self) -> bool: ...

    @abstractmethod
    def is_marked_finished(self, *, is_clean: bool) -> bool:
        """Is there content, and a sign other than a reason that nothing of it is missing?"""

    def understand(self, event: Event) -> Iterator[ModelEvent]:
        try:
            if isinstance(event, WholeAnswer):
                yield from self.read_whole(event)
            else:
                yield from self.read(event)
        except _NONSENSE:
            raise cut_off("an event is malformed") from None

    def finish(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        try:
            yield from self.end(failure)
        except _NONSENSE:
            raise cut_off("an event is malformed") from None

    def end(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        """Close what is open after the last event or a failure, then finish or raise."""
        flaw = self._flaw(failure)
        yield from self.end_text()
        yield from self.calls.end(is_cut=flaw is not None or self.reason in CUT_REASONS)
        if flaw is not None:
            flaw.usage = self.usage
            raise flaw
        if not self.reason:
            yield ProtocolDeviation("no end of the answer")
        reason = self.reason or "stop"
        if reason in ("stop", "tool_calls"):  # servers send either, with calls and without
            reason = "tool_calls" if self.calls.count else "stop"
        yield ModelFinished(reason, self.usage, upstream_ids=tuple(self._upstream_ids))

    def _flaw(self, failure: ModelFailed | None) -> ModelFailed | None:
        if self.reason == "error":
            return ModelFailed("The model ended its answer with an error.", is_transient=True)
        is_finished = bool(self.reason)
        if not is_finished:  # a call may be cut even where the stream is marked as finished
            is_finished = self.is_marked_finished(is_clean=failure is None) and self.calls.are_whole
        if not is_finished:
            return failure or self._cut_off("it ended without a finish reason")
        if self.has_nameless_call():
            return cut_off("it has a call without a name")
        # A model that chose to write nothing has at least the token that ends its answer.
        is_empty = self.reason == "stop" and not self.has_output()
        if is_empty and not self.usage.output_tokens:
            return failure or self._cut_off("it ended without any output")
        return None

    def _cut_off(self, how: str) -> ModelFailed:
        flaw = cut_off(how)
        flaw.is_empty = not self.has_output()
        return flaw


@dataclass(frozen=True)
class Protocol:
    body: Callable[[ModelCall, Upstream], dict[str, Any]]
    # Takes a body and headers.
    open: Callable[[UpstreamClient, dict[str, Any], dict[str, Any]], Opening]
    answer: Callable[[ModelCall, Upstream], Answer]


def is_json_object(arguments: str) -> bool:
    """Nothing can be missing from arguments that are a complete JSON object."""
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def read_logprobs(raw: Any) -> tuple[TokenLogprob, ...]:
    """One entry for each token, in one shape for both protocols; other entries are left out."""
    entries = []
    for given in _valid_logprobs(raw):
        alternatives = _valid_logprobs(given.get("top_logprobs"))
        entry = _logprob_entry(given)
        entry["top_logprobs"] = [_logprob_entry(other) for other in alternatives]
        entries.append(entry)
    return tuple(entries)


def _valid_logprobs(raw: Any) -> list[TokenLogprob]:
    if not isinstance(raw, list):
        return []
    valid = []
    for entry in raw:
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            continue
        if isinstance(entry.get("logprob"), int | float):
            valid.append(entry)
    return valid


def _logprob_entry(raw: TokenLogprob) -> TokenLogprob:
    """Chat Completions may leave the bytes out; Responses never does."""
    encoded = raw.get("bytes")
    if not isinstance(encoded, list):
        encoded = list(raw["token"].encode("utf-8", "replace"))
    return {"token": raw["token"], "bytes": encoded, "logprob": raw["logprob"]}
