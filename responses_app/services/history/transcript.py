"""Items as the messages of a transcript: texts, tool calls, and the outputs of tools."""

from collections.abc import Iterable
from typing import Any

from responses_app.protocol.items import (
    CALLS,
    OUTPUTS,
    Content,
    Item,
    call_arguments,
    content_text_with_refusals,
)
from responses_app.protocol.reasoning_items import reasoning_text

Message = dict[str, Any]
TEXT_TYPES = ("input_text", "output_text", "refusal")


def messages_of(items: Iterable[Item]) -> list[Message]:
    transcript = _Transcript()
    for item in items:
        transcript.add(item)
    transcript.close()
    return transcript.messages


def count_messages(items: Iterable[Item]) -> int:
    return len(messages_of(items))


def text_of_output(output: Iterable[Item]) -> str:
    """The text of all messages, whatever tools ran in between."""
    texts: list[str] = []
    for item in output:
        if item["type"] == "message":
            texts.append(content_text_with_refusals(item["content"]))
    return "".join(texts)


def unanswered_calls(output: Iterable[Item]) -> list[dict[str, Any]]:
    """The calls that end a turn, for the client to run."""
    messages = messages_of(output)
    if not messages:
        return []
    return messages[-1]["tool_calls"] or []


class _Transcript:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._tool_names: dict[str, str] = {}  # by call id
        self._reasoning: Item | None = None

    def add(self, item: Item) -> None:
        kind = item["type"]
        if kind == "reasoning":
            self.close()
            self._reasoning = item
        elif kind == "message":
            message = self._add_message(item, item["role"])
            message["content"] = _content(item["content"])
        elif kind in CALLS:
            self._add_call(item, item["call_id"])
        elif kind in OUTPUTS:
            self._add_output(item.get("id"), item["call_id"], _content(item["output"]))
        elif kind == "mcp_call" and "id" in item:
            self._add_call(item, item["id"])
            output = item.get("error") or item.get("output") or ""
            self._add_output(f"{item['id']}_output", item["id"], output)
        else:
            message = self._add_message(item, "assistant")
            message["display_kind"] = kind

    def close(self) -> None:
        """Reasoning that no message follows is a message of its own."""
        if self._reasoning is not None:
            self._add_message(self._reasoning, "assistant")

    def _add_message(self, item: Item, role: str) -> Message:
        message = _empty_message(item.get("id"), role)
        if role == "assistant" and self._reasoning is not None:
            reasoning = reasoning_text(self._reasoning)
            message["reasoning"] = reasoning
            message["reasoning_content"] = reasoning
            self._reasoning = None
        self.messages.append(message)
        return message

    def _add_call(self, item: Item, call_id: str) -> None:
        """Calls belong to the message that they follow."""
        message = None
        if self.messages and self._reasoning is None:
            message = self.messages[-1]
        if message is None or message["role"] != "assistant" or message["display_kind"]:
            message = self._add_message(item, "assistant")
        self._tool_names[call_id] = item["name"]
        function = {"name": item["name"], "arguments": call_arguments(item)}
        call = {"id": call_id, "type": "function", "function": function}
        message["tool_calls"] = (message["tool_calls"] or []) + [call]

    def _add_output(self, item_id: str | None, call_id: str, content: Any) -> None:
        self.close()
        message = _empty_message(item_id, "tool")
        message["content"] = content
        message["tool_call_id"] = call_id
        message["tool_name"] = self._tool_names.get(call_id)
        self.messages.append(message)


def _empty_message(item_id: str | None, role: str) -> Message:
    return {
        "id": item_id,
        "role": role,
        "content": "",
        "tool_call_id": None,
        "tool_calls": None,
        "tool_name": None,
        "reasoning": None,
        "reasoning_content": None,
        "display_kind": None,
    }


def _content(content: Content | None) -> Content:
    """A plain text where all parts are text."""
    if isinstance(content, list) and any(part["type"] not in TEXT_TYPES for part in content):
        return content
    return content_text_with_refusals(content)
