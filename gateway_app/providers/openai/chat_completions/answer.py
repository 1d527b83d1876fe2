"""The chunks of OpenAI's Chat Completions as the events of a model."""

from collections.abc import Iterator
from typing import Any

from gateway_app.agent.events import (
    Annotation,
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
from gateway_app.providers.openai.chat_completions.annotations import from_chat
from gateway_app.providers.openai.chat_completions.call_fragments import (
    ChatCall,
    ChatCalls,
    arguments_text,
    free_text,
)
from gateway_app.providers.openai.chat_completions.content import (
    read_reasoning,
    text_of,
    thinking_in,
)
from gateway_app.providers.openai.chat_completions.request import chat_body
from gateway_app.providers.openai.chat_completions.returned_state import (
    DETAILS,
    EXTRAS,
    ReasoningDetails,
)
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient
from gateway_app.providers.openai.errors import failure_in
from gateway_app.providers.openai.sse import Event, WholeAnswer
from gateway_app.providers.openai.state import opaque
from gateway_app.providers.openai.usage import newer, usage_in_chunk
from responses_app.protocol.items import Annotation as AnnotationBody

# Any other reason counts as `stop`.
_REASONS = {
    "length": "length",
    "model_length": "length",  # Mistral: the context is full
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "error": "error",
    "abort": "error",  # vLLM, SGLang
    "insufficient_system_resource": "error",  # DeepSeek
}

_COUNTS = frozenset(("usage", "x_groq", "timings"))  # fields of a chunk that may count tokens


def _counts_tokens(event: Event) -> bool:
    """Most servers send an empty field with each chunk."""
    return any(event.get(name) for name in _COUNTS)


def open_chat(client: UpstreamClient, body: dict[str, Any], headers: dict[str, Any]) -> Opening:
    return client.open("chat/completions", body, headers)


class ChatAnswer(Answer):
    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        super().__init__(call, upstream)
        self._has_content = False
        self._has_last_chunk = False
        self._chat_calls = ChatCalls()
        self._annotations: list[AnnotationBody] = []
        # Their text is inside a JSON object, so it is known only at the end.
        self._custom: list[ChatCall] = []
        self._last_call_id = ""
        self._details = ReasoningDetails()

    def read(self, event: Event) -> Iterator[ModelEvent]:
        usage = usage_in_chunk(event)
        if usage is not None:
            self.usage = newer(self.usage, usage)
            # Some servers send usage with every chunk: only one without a choice is the last.
            self._has_last_chunk = not event.get("choices")
        self.add_upstream_id(event.get("id"))
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                if choice.get("error"):  # OpenRouter
                    raise failure_in(choice["error"])
                yield from self._read_delta(choice.get("delta") or {}, choice.get("logprobs"))
                if choice.get("finish_reason"):
                    self._set_reason(choice["finish_reason"])
                return

    def text_alone(self, event: Event) -> str | None:
        choices = event.get("choices")
        if type(choices) is not list or len(choices) != 1:
            return None
        if not _COUNTS.isdisjoint(event) and _counts_tokens(event):
            return None
        choice = choices[0]
        if type(choice) is not dict:
            return None
        delta = choice.get("delta")
        if type(delta) is not dict:
            return None
        for name, value in choice.items():
            if value and name != "delta":  # an index of another choice, a reason, an error
                return None
        for name, value in delta.items():
            if value and name not in ("content", "role"):
                return None
        text: Any = delta.get("content")
        if type(text) is str and text:
            return text
        return None

    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]:
        yield ProtocolDeviation("a whole answer")
        self.usage = usage_in_chunk(body) or Usage()
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
                yield from self.calls.arguments(call.call_id, free_text(arguments))
                yield from self.calls.finish(call.call_id)
        if self._details.merged and self.reason:  # of a part of an answer they are of no use
            yield from self.end_text()
            state = {DETAILS: self._details.merged}
            yield ItemState(state, self.identity, self._last_call_id)
        yield from super().end(failure)

    def has_output(self) -> bool:
        return self._has_content or bool(self._chat_calls.calls)

    def has_nameless_call(self) -> bool:
        return self._chat_calls.has_nameless

    def is_marked_finished(self, *, is_clean: bool) -> bool:
        return self._has_last_chunk and (self._has_content or self.calls.count > 0)

    def _set_reason(self, given: Any) -> None:
        self.reason = _REASONS.get(str(given), "stop")

    def _read_delta(self, delta: dict[str, Any], logprobs: Any) -> Iterator[ModelEvent]:
        reasoning = read_reasoning(delta)
        if reasoning is not None:
            self._has_content = True
            yield from self.calls.emit(reasoning)
        content = delta.get("content")
        if isinstance(content, list):
            for thinking in thinking_in(content):
                self._has_content = True
                yield from self.calls.emit(ReasoningDelta(thinking))
        text = text_of(content)
        if text:
            self._has_content = True
            token_logprobs = (logprobs or {}).get("content")
            yield from self.emit_text(self.text_delta(text, token_logprobs))
        refusal = text_of(delta.get("refusal"))
        if refusal:
            self._has_content = True
            yield from self.end_text()
            yield from self.calls.emit(RefusalDelta(refusal))
        if delta.get("annotations"):
            yield from self._read_annotations(delta["annotations"])
        if isinstance(delta.get(DETAILS), list):
            self._details.add(delta[DETAILS])
        for fragment in delta.get("tool_calls") or ():
            yield from self.end_text()
            yield from self._read_fragment(fragment)

    def _read_annotations(self, given: Any) -> Iterator[ModelEvent]:
        """Some servers repeat the annotations of earlier chunks."""
        for entry in given:
            annotation = from_chat(entry)
            if annotation is not None and annotation not in self._annotations:
                self._annotations.append(annotation)
                yield from self.calls.emit(Annotation(opaque(annotation)))

    def _read_fragment(self, fragment: dict[str, Any]) -> Iterator[ModelEvent]:
        if EXTRAS in fragment:
            opaque(fragment[EXTRAS])  # before the call starts: it is nothing without them
        function = fragment.get("function") or {}
        index = fragment.get("index")
        given_id = fragment.get("id") or ""
        name = function.get("name") or ""
        arguments = arguments_text(function.get("arguments"))
        if not (given_id or name or arguments):
            yield from self._read_extras(self._chat_calls.newest_at(index), fragment)
            return
        call = self._chat_calls.find(index, given_id, name, arguments)
        if call is None:
            call = self._chat_calls.begin(index)
        elif name and call.is_repeated_by(given_id, arguments):
            return
        call.given_id = call.given_id or given_id
        call.name = call.name or name
        call.waiting += arguments
        call.received.append(arguments)
        if name and not call.call_id:
            started = self.calls.start(call.given_id, name)
            call.call_id = self._last_call_id = started.call_id
            if started.kind == "custom_tool_call":
                self._custom.append(call)
            yield started
        if call.call_id and call.waiting and call not in self._custom:
            yield from self.calls.arguments(call.call_id, call.waiting)
            call.waiting = ""
        yield from self._read_extras(call, fragment)

    def _read_extras(self, call: ChatCall | None, fragment: dict[str, Any]) -> Iterator[ModelEvent]:
        """The server's own; they may come in a fragment that has nothing else."""
        if call is None:
            return
        call.extras |= fragment.get(EXTRAS) or {}
        if call.call_id and call.extras:
            yield ItemState({EXTRAS: call.extras}, self.identity, call.call_id)
            call.extras = {}


CHAT_COMPLETIONS = Protocol(chat_body, open_chat, ChatAnswer)
