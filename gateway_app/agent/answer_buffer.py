"""The answer of a model: for its tools, for the next call, and to continue it after a cut."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway_app.agent.context import as_note, without_dangling_reasoning
from gateway_app.agent.events import (
    Annotation,
    CallArguments,
    CallFinished,
    CallStarted,
    ItemState,
    MessageStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.text_buffer import TextBuffer

CONTINUE = (
    "Your answer above was cut off by a lost connection. Go on exactly where it stops: "
    "repeat nothing of it, and do not comment on the interruption."
)


class AnswerBuffer:
    """Collects the answer of one round, which may take several requests.

    This is the agent's only copy of the text. The response's snapshot keeps its own: it is built
    from the recorded events alone, in the form that clients see.
    """

    def __init__(self) -> None:
        self._entries: list[Item | _Entry] = []
        self.begin_request()

    def begin_request(self, provider: str = "") -> None:
        """What follows is the answer to another request of the round, from this provider."""
        self.has_deltas = False  # whether the client got anything of it
        self.is_unmarked = False  # reasoning began, and its log does not name the provider yet
        self.chars = 0  # of everything the model wrote
        self._provider = provider
        # The last entry, if text or reasoning can be added to it.
        self._message: _Message | None = None
        self._reasoning: _Reasoning | None = None
        self._request_start = len(self._entries)
        self._calls: dict[str, _Call] = {}
        self._finish: ModelFinished | None = None

    def add(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):  # the most frequent event
            self._add_text(event.text)
        elif isinstance(event, ReasoningDelta):
            self._add_reasoning(event.text)
        elif isinstance(event, RefusalDelta):
            self._add_text(event.text)
        elif isinstance(event, CallArguments):
            self.chars += len(event.delta)
            self._calls[event.call_id].arguments.add(event.delta)
        elif isinstance(event, CallFinished):
            self._calls[event.call_id].is_whole = not event.is_cut
        elif isinstance(event, ModelFinished):
            self._finish = event
        else:
            self._add_entry(event)

    def _add_text(self, text: str) -> None:
        self.has_deltas = True
        self.chars += len(text)
        if self._message is None:
            self._begin_message(None)
        assert self._message is not None
        self._message.content.add(text)

    def _begin_message(self, phase: str | None) -> None:
        self._message = _Message(phase)
        self._reasoning = None
        self._entries.append(self._message)

    def _add_reasoning(self, text: str) -> None:
        self.chars += len(text)
        if self._reasoning is None:
            self._begin_reasoning(self._provider)
            self.is_unmarked = bool(self._provider)
        assert self._reasoning is not None
        self._reasoning.text.add(text)

    def _begin_reasoning(self, provider: str) -> None:
        reasoning = _Reasoning()
        reasoning.add_state(provider, {})
        self._append(reasoning)
        self._reasoning = reasoning

    def mark(self) -> ItemState:
        """The origin of the reasoning that has just begun."""
        self.is_unmarked = False
        return ItemState({}, self._provider)

    def _add_entry(self, event: ModelEvent) -> None:
        if isinstance(event, MessageStarted):
            self._begin_message(event.phase)
        elif isinstance(event, CallStarted):
            call = _Call(event)
            self._calls[event.call_id] = call
            self._append(call)
        elif isinstance(event, ReasoningSealed):
            if self._reasoning is None:
                self._begin_reasoning(event.provider)
            assert self._reasoning is not None
            self._reasoning.encrypted_content = event.encrypted_content
            self._reasoning = None
        elif isinstance(event, ItemState):
            self._add_state(event)
        elif isinstance(event, OpaqueItem):
            self._append(event.item)
        elif isinstance(event, Annotation):
            self.has_deltas = True

    def _append(self, entry: "Item | _Entry") -> None:
        self.has_deltas = True
        self._message = None
        self._reasoning = None
        self._entries.append(entry)

    def _add_state(self, event: ItemState) -> None:
        entry = self._calls.get(event.call_id) or self._entries[-1]
        if isinstance(entry, _Entry):
            entry.add_state(event.provider, event.state)

    @property
    def finish(self) -> ModelFinished:
        """How the last request ended."""
        if self._finish is None:
            raise ModelFailed(
                "The model's stream ended without a finish reason.", is_transient=True
            )
        return self._finish

    def calls(self) -> list[ToolCall]:
        """The calls of the last request that may be run."""
        return [call.as_tool_call() for call in self._calls.values() if call.is_whole]

    def cut_calls(self) -> list[CallStarted]:
        """The calls of the last request that broke off."""
        return [call.started for call in self._calls.values() if not call.is_whole]

    def request_items(self) -> list[Item]:
        """The answer to the last request."""
        return _as_items(self._entries[self._request_start :])

    def items(self) -> list[Item]:
        """The answer of the whole round."""
        return _as_items(self._entries)

    def cut_call_ids(self) -> set[str]:
        cut_ids: set[str] = set()
        for entry in self._entries:
            if isinstance(entry, _Call) and not entry.is_whole:
                cut_ids.add(entry.started.call_id)
        return cut_ids


class _Entry:
    """A part of the answer that becomes an item, with the state that its provider gets back."""

    def __init__(self) -> None:
        self._provider = ""
        self._state: dict[str, Any] | None = None

    def add_state(self, provider: str, state: dict[str, Any]) -> None:
        self._provider = provider
        self._state = (self._state or {}) | state

    def as_item(self) -> Item | None:
        item = self._as_plain_item()
        if item is not None and self._state is not None:
            item["provider_state"] = {"provider": self._provider, "state": self._state}
        return item

    def _as_plain_item(self) -> Item | None:
        raise NotImplementedError


class _Message(_Entry):
    def __init__(self, phase: str | None = None) -> None:
        super().__init__()
        self.phase = phase
        self.content = TextBuffer()

    def _as_plain_item(self) -> Item | None:
        text = self.content.text()
        if not text:
            return None
        content: list[ContentPart] = [{"type": "output_text", "text": text}]
        message: Item = {"type": "message", "role": "assistant", "content": content}
        if self.phase:
            message["phase"] = self.phase
        return message


class _Reasoning(_Entry):
    def __init__(self) -> None:
        super().__init__()
        self.text = TextBuffer()
        self.encrypted_content = ""

    def _as_plain_item(self) -> Item | None:
        reasoning: Item = {"type": "reasoning", "summary": []}
        text = self.text.text()
        if text:
            reasoning["content"] = [{"type": "reasoning_text", "text": text}]
        if self.encrypted_content:
            reasoning["encrypted_content"] = self.encrypted_content
        return reasoning


class _Call(_Entry):
    def __init__(self, started: CallStarted) -> None:
        super().__init__()
        self.started = started
        self.arguments = TextBuffer()
        self.is_whole = False

    def as_tool_call(self) -> ToolCall:
        return ToolCall(self.started.call_id, self.started.name, self.arguments.text())

    def _as_plain_item(self) -> Item | None:
        if not self.is_whole:
            return None
        return {
            "type": "function_call",
            "call_id": self.started.call_id,
            "name": self.started.name,
            "arguments": self.arguments.text(),
        }


def _as_items(entries: Sequence[Item | _Entry]) -> list[Item]:
    """In order, without the calls that were cut: no output can follow those."""
    items: list[Item] = []
    for entry in entries:
        item: Item | None
        if isinstance(entry, _Entry):
            item = entry.as_item()
        else:
            item = entry
        if item is not None:
            items.append(item)
    return without_dangling_reasoning(items)


def follow(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call with the answer of a round; the outputs of its calls come next."""
    return _with_cut_ids(call.followed_by(answer.items()), answer)


def continued(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call that shows the model its answer up to a cut and asks it to go on exactly there."""
    if not answer.request_items():
        return replace(call, is_retry=True)
    return interrupted(call, answer, CONTINUE)


def interrupted(call: ModelCall, answer: AnswerBuffer, note: str) -> ModelCall:
    """The call again, followed by its partial answer and a note about the interruption."""
    items = call.items + answer.request_items() + [as_note(note)]
    return _with_cut_ids(replace(call, items=items, is_retry=True), answer)


def _with_cut_ids(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The ids of calls that were cut are in no item, and may not be used again."""
    cut_ids = answer.cut_call_ids()
    if not cut_ids:
        return call
    return replace(call, used_call_ids=call.used_call_ids | cut_ids)
