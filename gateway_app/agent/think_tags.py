"""Reasoning that a model server leaves in the text, between tags.

Servers that do not parse the model's template send it so: LM Studio by default, older versions of
Ollama, llama-cpp-python. Only the tags of templates count. ``<thinking>`` is none of them: prompts
ask for it, and the client that asked reads it in the text.

A tag counts only where the message begins. Some templates put the opening tag into the prompt, and
the answer has only the closing one: it stays text, as no text is held back in case one comes.
"""

from collections.abc import Sequence

from gateway_app.agent.events import ModelEvent, ReasoningDelta, TextDelta
from responses_app.protocol.items import TokenLogprob

MAX_HELD_CHARS = 500  # models in JSON mode may send whitespace without end
CLOSING_TAG_OF = {"<think>": "</think>", "[THINK]": "[/THINK]"}


class ThinkTags:
    """Splits the text of one message; once ``is_over``, the rest is text and need not be fed."""

    def __init__(self) -> None:
        self.is_over = False
        self._held = ""  # may be a part of a tag, or whitespace before one
        self._logprobs: list[TokenLogprob] = []  # of the held text
        self._closing_tag = ""  # once the opening tag has come
        self._has_reasoning = False
        self._is_closed = False

    def feed(self, delta: TextDelta) -> list[ModelEvent]:
        text = self._held + delta.text
        self._held = ""
        self._logprobs += delta.logprobs
        if self._is_closed:
            return self._answer(text)
        if self._closing_tag:
            return self._reason(text)
        return self._begin(text)

    def release(self) -> list[ModelEvent]:
        """What is held back, once no more text follows or something else comes first."""
        held, self._held = self._held, ""
        self.is_over = True
        if not held:
            return []
        if self._closing_tag:
            return [ReasoningDelta(held)]
        return [TextDelta(held, tuple(self._logprobs))]

    def _begin(self, text: str) -> list[ModelEvent]:
        beginning = text.lstrip()
        for tag, closing_tag in CLOSING_TAG_OF.items():
            if beginning.startswith(tag):
                self._closing_tag = closing_tag
                return self._reason(beginning[len(tag) :])
        self._held = text
        may_begin_tag = any(tag.startswith(beginning) for tag in CLOSING_TAG_OF)
        if may_begin_tag and len(text) <= MAX_HELD_CHARS:
            return []
        return self.release()

    def _reason(self, text: str) -> list[ModelEvent]:
        if not self._has_reasoning:
            text = text.lstrip()
        reasoning, tag, answer = text.partition(self._closing_tag)
        if not tag:
            end = len(text) - _overlap(text, self._closing_tag)
            reasoning = text[:end]
            self._held = text[end:]
            self._logprobs.clear()
        events: list[ModelEvent] = []
        if reasoning:
            self._has_reasoning = True
            events.append(ReasoningDelta(reasoning))
        if tag:
            self._is_closed = True
            events += self._answer(answer)
        return events

    def _answer(self, text: str) -> list[ModelEvent]:
        """Empty lines between the tag and the answer belong to neither."""
        text = text.lstrip()
        logprobs = _last_tokens(self._logprobs, len(text))
        self._logprobs.clear()
        if not text:
            return []
        self.is_over = True
        return [TextDelta(text, logprobs)]


def _overlap(text: str, tag: str) -> int:
    """How many of the last characters begin the tag."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0


def _last_tokens(logprobs: Sequence[TokenLogprob], chars: int) -> tuple[TokenLogprob, ...]:
    """The tokens at the end that these characters hold."""
    first = len(logprobs)
    while first and len(logprobs[first - 1]["token"]) <= chars:
        first -= 1
        chars -= len(logprobs[first]["token"])
    return tuple(logprobs[first:])
