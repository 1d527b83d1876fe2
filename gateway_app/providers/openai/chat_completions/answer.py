"""The chunks of OpenAI's Chat Completions as the events of a model."""

from collections.abc import Iterator
from typing import Any

import orjson

from gateway_app.agent.events import (
    ItemState,
    ModelEvent,
    ModelFailed,
    ProtocolDeviation,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.answer import CUT_REASONS, Answer, Protocol, is_json_object
from gateway_app.providers.openai.chat_completions.request import chat_body
from gateway_app.providers.openai.chat_completions.returned_state import (
    DETAILS,
    EXTRAS,
    merge_details,
)
from gateway_app.providers.openai.client import (
    Opening,
    Upstream,
    UpstreamClient,
    read_usage,
)
from gateway_app.providers.openai.sse import Event, WholeAnswer

_REASONS = frozenset(("length", "content_filter", "tool_calls", "error"))


def open_chat(client: UpstreamClient, body: dict[str, Any], headers: dict[str, Any]) -> Opening:
    # The SDK walks through every message it is given, at 0.2 ms each; an extra body it sends as it is.
    create = client.sdk.chat.completions.with_streaming_response.create
    stream: bool = body["stream"]
    return create(
        model=client.upstream.model,
        messages=[],
        stream=stream,
        extra_body=body,
        extra_headers=headers,
    )


class ChatAnswer(Answer):
    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        super().__init__(call, upstream)
        self._has_content = False
        self._has_last_chunk = False
        self._by_index: dict[int, _ChatCall] = {}
        self._nameless = 0
        # Their text is inside a JSON object, so it is known only at the end.
        self._custom: list[_ChatCall] = []
        self._last_call_id = ""
        self._details: list[Any] = []  # fragments of reasoning_details

    def read(self, event: Event) -> Iterator[ModelEvent]:
        if event.get("usage"):
            self.usage = read_usage(event["usage"])
            # Some servers send usage with every chunk: only one without a choice is the last.
            self._has_last_chunk = not event.get("choices") and self.usage != Usage()
        self.add_upstream_id(event.get("id"))
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                yield from self._read_delta(choice.get("delta") or {}, choice.get("logprobs"))
                if choice.get("finish_reason"):
                    self._set_reason(choice["finish_reason"])
                return

    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]:
        yield ProtocolDeviation("a whole answer")
        self.usage = read_usage(body.get("usage"))
        self.add_upstream_id(body.get("id"))
        choice = body["choices"][0]
        delta = dict(choice["message"])
        calls = []
        for index, call in enumerate(delta.get("tool_calls") or ()):
            calls.append(call | {"index": index})
        delta["tool_calls"] = calls
        yield from self._read_delta(delta, choice.get("logprobs"))
        self._set_reason(choice.get("finish_reason"))

    def end(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        is_cut = not self.reason or self.reason in CUT_REASONS
        for call in self._custom:
            arguments = "".join(call.received)
            if not is_cut or is_json_object(arguments):
                yield from self.calls.arguments(call.call_id, _free_text(arguments))
                yield from self.calls.finish(call.call_id)
        if self._details and self.reason and (self._has_content or self._last_call_id):
            state = {DETAILS: merge_details(self._details)}
            yield ItemState(state, self.identity, self._last_call_id)
        yield from super().end(failure)

    def has_nameless_call(self) -> bool:
        return self._nameless > 0

    def is_marked_finished(self, *, is_clean: bool) -> bool:
        return self._has_last_chunk and (self._has_content or self.calls.count > 0)

    def _set_reason(self, given: Any) -> None:
        self.reason = "stop"
        if given in _REASONS:
            self.reason = given

    def _read_delta(self, delta: dict[str, Any], logprobs: Any) -> Iterator[ModelEvent]:
        reasoning = _text(delta.get("reasoning_content") or delta.get("reasoning"))
        if reasoning:
            self._has_content = True
            yield from self.calls.emit(ReasoningDelta(reasoning))
        text = _text(delta.get("content"))
        if text:
            self._has_content = True
            token_logprobs = (logprobs or {}).get("content")
            yield from self.calls.emit(self.text_delta(text, token_logprobs))
        refusal = _text(delta.get("refusal"))
        if refusal:
            self._has_content = True
            yield from self.calls.emit(RefusalDelta(refusal))
        if isinstance(delta.get(DETAILS), list):
            self._details += delta[DETAILS]
        for fragment in delta.get("tool_calls") or ():
            yield from self._read_fragment(fragment)

    def _read_fragment(self, fragment: dict[str, Any]) -> Iterator[ModelEvent]:
        index = fragment.get("index") or 0
        function = fragment.get("function") or {}
        given_id = fragment.get("id") or ""
        name = function.get("name") or ""
        call = self._by_index.get(index)
        if call is None or call.is_followed_by(given_id, name):
            call = self._by_index[index] = _ChatCall()
            self._nameless += 1
        call.given_id = call.given_id or given_id
        call.name = call.name or name
        arguments = _arguments(function.get("arguments"))
        call.waiting += arguments
        call.received.append(arguments)
        if name and not call.call_id:
            started = self.calls.start(call.given_id, name)
            call.call_id = self._last_call_id = started.call_id
            self._nameless -= 1
            if started.kind == "custom_tool_call":
                self._custom.append(call)
            yield started
        if call.call_id and call.waiting and call not in self._custom:
            yield from self.calls.arguments(call.call_id, call.waiting)
            call.waiting = ""
        call.extras |= fragment.get(EXTRAS) or {}
        if call.call_id and call.extras:
            yield ItemState({EXTRAS: call.extras}, self.identity, call.call_id)
            call.extras = {}


class _ChatCall:
    """A call whose fragments are still coming; it starts once its name is known."""

    def __init__(self) -> None:
        self.given_id = ""
        self.call_id = ""
        self.name = ""
        self.waiting = ""  # arguments that came before the name
        self.received: list[str] = []  # all arguments
        self.extras: dict[str, Any] = {}  # that were not passed on yet

    def is_followed_by(self, given_id: str, name: str) -> bool:
        """Does a fragment belong to the next call?

        Some servers give every call the index 0. Then another id begins another call, or a name
        after a complete call.
        """
        if not (name and self.call_id):
            return False
        if given_id:
            return given_id != self.given_id
        return name != self.name or _is_json("".join(self.received))


def _is_json(arguments: str) -> bool:
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return True


def _free_text(arguments: str) -> str:
    """The input of a custom tool; a model that wrote no JSON object meant its text as it is."""
    if not is_json_object(arguments):
        return arguments
    text = orjson.loads(arguments).get("input")
    if isinstance(text, str):
        return text
    return arguments


def _arguments(given: Any) -> str:
    if isinstance(given, str):
        return given
    if given:
        return orjson.dumps(given).decode()
    return ""


def _text(given: Any) -> str:
    """Some servers send a list of parts where others send the text."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        return ""
    texts = []
    for part in given:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts)


CHAT_COMPLETIONS = Protocol(chat_body, open_chat, ChatAnswer)
