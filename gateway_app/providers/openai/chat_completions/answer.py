"""OpenAI's Chat Completions: its chunks as the events of a model."""

from collections.abc import Iterator
from typing import Any

import orjson

from gateway_app.agent.events import (
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
        self._has_content = self._has_last_chunk = False
        self._by_index: dict[int, _ChatCall] = {}
        self._nameless = 0
        self._custom: list[
            _ChatCall
        ] = []  # their text is inside a JSON object, so it is known only at the end

    def read(self, event: Event) -> Iterator[ModelEvent]:
        if event.get("usage"):
            self.usage = read_usage(event["usage"])
            # Servers that count as they go send it with every chunk: only one without a choice is the last.
            self._has_last_chunk = not event.get("choices") and self.usage != Usage()
        self.add_upstream_id(event.get("id"))
        choice = next((c for c in event.get("choices") or () if c.get("index", 0) == 0), None)
        if choice is not None:
            yield from self._delta(choice.get("delta") or {}, choice.get("logprobs"))
            reason = choice.get("finish_reason")
            self.reason = reason if reason in _REASONS else "stop" if reason else self.reason

    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]:
        yield ProtocolDeviation("a whole answer")
        self.usage = read_usage(body.get("usage"))
        self.add_upstream_id(body.get("id"))
        choice = body["choices"][0]
        message = choice["message"]
        calls = [
            {**call, "index": index} for index, call in enumerate(message.get("tool_calls") or ())
        ]
        yield from self._delta({**message, "tool_calls": calls}, choice.get("logprobs"))
        reason = choice.get("finish_reason")
        self.reason = reason if reason in _REASONS else "stop"

    def end(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        for call in self._custom:
            arguments = "".join(call.heard)
            if is_json_object(arguments) or self.reason not in ("", *CUT_REASONS):
                yield from self.calls.arguments(call.call_id, _free_text(arguments))
                yield from self.calls.finish(call.call_id)
        yield from super().end(failure)

    def has_nameless_call(self) -> bool:
        return self._nameless > 0

    def is_marked_finished(self, *, is_clean: bool) -> bool:
        return self._has_last_chunk and (self._has_content or bool(self.calls.count))

    def _delta(self, delta: dict[str, Any], logprobs: Any) -> Iterator[ModelEvent]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        spoken = self.text_delta(_text(delta.get("content")), (logprobs or {}).get("content"))
        for said in (
            ReasoningDelta(_text(thought)),
            spoken,
            RefusalDelta(_text(delta.get("refusal"))),
        ):
            if said.text:
                self._has_content = True
                yield from self.calls.emit(said)
        for fragment in delta.get("tool_calls") or ():
            yield from self._fragment(fragment)

    def _fragment(self, fragment: dict[str, Any]) -> Iterator[ModelEvent]:
        index, function = fragment.get("index") or 0, fragment.get("function") or {}
        given_id, name = fragment.get("id") or "", function.get("name") or ""
        known = self._by_index.get(index)
        if known is None or known.is_followed_by(given_id, name):
            known = self._by_index[index] = _ChatCall()
            self._nameless += 1
        known.given_id = known.given_id or given_id
        known.name = known.name or name
        arguments = _arguments(function.get("arguments"))
        known.waiting += arguments
        known.heard.append(arguments)
        if name and not known.call_id:
            started = self.calls.start(known.given_id, name)
            known.call_id = started.call_id
            self._nameless -= 1
            if started.kind == "custom_tool_call":
                self._custom.append(known)
            yield started
        if known.call_id and known.waiting and known not in self._custom:
            yield from self.calls.arguments(known.call_id, known.waiting)
            known.waiting = ""


class _ChatCall:
    """A call whose fragments are still coming; it starts once its name is known."""

    def __init__(self) -> None:
        self.given_id = self.call_id = self.name = self.waiting = ""
        self.heard: list[str] = []

    def is_followed_by(self, given_id: str, name: str) -> bool:
        """Some servers give every call the index 0: an id tells the next one, or else a whole call before it."""
        if not (name and self.call_id):
            return False
        if given_id:
            return given_id != self.given_id
        return name != self.name or _is_json("".join(self.heard))


def _is_json(arguments: str) -> bool:
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return True


def _free_text(arguments: str) -> str:
    """The text for a custom tool; a model that did not write the object meant what it wrote."""
    if not is_json_object(arguments):
        return arguments
    text = orjson.loads(arguments).get("input")
    return text if isinstance(text, str) else arguments


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else orjson.dumps(given).decode() if given else ""


def _text(given: Any) -> str:
    """Some servers send a list of parts where others send the text."""
    if isinstance(given, list):
        return "".join(
            part["text"]
            for part in given
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return given if isinstance(given, str) else ""


CHAT_COMPLETIONS = Protocol(chat_body, open_chat, ChatAnswer)
