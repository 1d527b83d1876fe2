"""Continues an answer that was cut off by prefill: the upstream goes on with the last message.

This is exact, where a note that asks the model to go on makes many models start anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from gateway_app.agent.events import ModelEvent, ModelFailed, TextDelta
from gateway_app.agent.model_call import CutAt, ModelCall
from gateway_app.config.presets.facts import Continuation, Preset
from gateway_app.providers.openai.chat_completions.answer import ChatAnswer
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.exchange import Exchange
from responses_app.protocol.items import item_text

PREFILL = "prefill"


@dataclass
class PrefillExchange(Exchange):
    form = PREFILL


def prefix_of(call: ModelCall, preset: Preset) -> str:
    """The text that the upstream can go on with; empty if there is none."""
    if call.cut_at is not CutAt.TEXT or preset.continuation is Continuation.NOTE:
        return ""
    last = call.items[-1]
    if last["type"] != "message" or last["role"] != "assistant":
        return ""
    text = item_text(last)
    if not text.strip():  # templates trim it, and then there is no message to go on with
        return ""
    return text


def prefilled(body: dict[str, Any], prefix: str, preset: Preset) -> dict[str, Any] | None:
    """The body as a request to continue its last message; None if that message has another form."""
    messages: list[dict[str, Any]] = list(body["messages"])
    last = messages[-1]
    if last["role"] != "assistant" or last.get("tool_calls"):
        return None
    # Exactly what the client was sent: a space at its end decides how the next word begins.
    messages[-1] = last | {"content": prefix}
    if preset.continuation is Continuation.PREFIX:
        messages[-1]["prefix"] = True
    body = body | {"messages": messages}
    if preset.continuation is Continuation.FINAL_MESSAGE:
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body


def continuation_upstream(upstream: Upstream) -> Upstream:
    """The upstream at the address that takes continuations.

    The key never goes to another host than the one that the configuration names.
    """
    beside = urlsplit(upstream.preset.continuation_url)
    if not beside.path:
        return upstream
    base_url = upstream.base_url or upstream.preset.base_url
    if urlsplit(base_url).netloc == beside.netloc:
        return replace(upstream, base_url=upstream.preset.continuation_url)
    return replace(upstream, base_url=base_url.rstrip("/") + beside.path)


class EchoingAnswer(ChatAnswer):
    """The answer of an upstream that sends the prefix again, in one delta or in several."""

    def __init__(self, call: ModelCall, upstream: Upstream, prefix: str) -> None:
        super().__init__(call, upstream)
        self._expected = prefix  # of the echo, and not received yet
        self._held: list[ModelEvent] = []  # they may be the beginning of the echo

    def read(self, event: dict[str, Any]) -> Iterator[ModelEvent]:
        for model_event in super().read(event):
            if isinstance(model_event, TextDelta) and self._expected:
                yield from self._without_echo(model_event)
            else:
                yield model_event

    def text_alone(self, event: dict[str, Any]) -> str | None:
        if self._expected:
            return None
        return super().text_alone(event)

    def end(self, failure: ModelFailed | None) -> Iterator[ModelEvent]:
        # A whole answer that is shorter than the prefix is no echo; one that broke off in the
        # echo brought nothing new.
        if failure is None:
            yield from self._held
        self._held = []
        yield from super().end(failure)

    def _without_echo(self, delta: TextDelta) -> Iterator[ModelEvent]:
        if self._expected.startswith(delta.text):
            self._expected = self._expected[len(delta.text) :]
            self._held.append(delta)
            if not self._expected:
                self._held = []
        elif delta.text.startswith(self._expected):
            rest = delta.text[len(self._expected) :]
            self._held = []
            self._expected = ""
            yield TextDelta(rest)
        else:
            yield from self._held
            yield delta
            self._held = []
            self._expected = ""
