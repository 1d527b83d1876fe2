"""The parts of an answer while they grow, and the items that they become."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from gateway_app.agent.context import without_dangling_reasoning
from gateway_app.agent.events import CallStarted
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.text_buffer import TextBuffer


class Entry(ABC):
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

    @abstractmethod
    def _as_plain_item(self) -> Item | None:
        """Without the state; None for what no model gets back."""


class Message(Entry):
    def __init__(self, phase: str | None = None) -> None:
        super().__init__()
        self.phase = phase
        self.content = TextBuffer()
        self.is_cut = False
        self._is_shared = False  # another extends the content
        self._is_apart = False  # the content is extended here from now on

    def add(self, text: str) -> None:
        if self._is_shared:
            self.content = TextBuffer(self.content.text())
            self._is_shared = False
            self._is_apart = True  # for good: each change back copies the text
        self.content.add(text)

    def shares(self, recorded: TextBuffer | None) -> bool:
        """Keep the text in the recorded buffer from now on, if it holds the same."""
        if self._is_shared:
            return recorded is self.content
        if recorded is None or self._is_apart or recorded.text() != self.content.text():
            return False
        self.content = recorded
        self._is_shared = True
        return True

    def _as_plain_item(self) -> Item | None:
        text = self.content.text()
        if not text:
            return None
        content: list[ContentPart] = [{"type": "output_text", "text": text}]
        message: Item = {"type": "message", "role": "assistant", "content": content}
        if self.phase:
            message["phase"] = self.phase
        if self.is_cut:
            message["status"] = "incomplete"
        return message


class Reasoning(Entry):
    def __init__(self, *, is_summary: bool = False) -> None:
        super().__init__()
        self.is_summary = is_summary
        self.text = TextBuffer()
        self.encrypted_content = ""

    def _as_plain_item(self) -> Item | None:
        reasoning: Item = {"type": "reasoning", "summary": []}
        text = self.text.text()
        if text and self.is_summary:
            reasoning["summary"] = [{"type": "summary_text", "text": text}]
        elif text:
            reasoning["content"] = [{"type": "reasoning_text", "text": text}]
        if self.encrypted_content:
            reasoning["encrypted_content"] = self.encrypted_content
        return reasoning


class Call(Entry):
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
        item: Item = {
            "type": self.started.kind,
            "call_id": self.started.call_id,
            "name": self.started.name,
        }
        if self.started.kind == "custom_tool_call":
            item["input"] = self.arguments.text()
        else:
            item["arguments"] = self.arguments.text()
        return item


def as_items(entries: Sequence[Item | Entry]) -> list[Item]:
    """In order, without the calls that were cut: no output can follow those."""
    items: list[Item] = []
    for entry in entries:
        item: Item | None
        if isinstance(entry, Entry):
            item = entry.as_item()
        else:
            item = entry
        if item is not None:
            items.append(item)
    return without_dangling_reasoning(items)
