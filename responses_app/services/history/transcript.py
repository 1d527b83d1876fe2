"""Items as the messages of a transcript: what was said, which tools were called, what they answered."""

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

Message = dict[str, Any]
TEXT_TYPES = ("input_text", "output_text", "refusal")
EMPTY: Message = {
    "content": "",
    "tool_call_id": None,
    "tool_calls": None,
    "tool_name": None,
    "reasoning": None,
    "reasoning_content": None,
    "display_kind": None,
}


def messages_of(items: Iterable[Item]) -> list[Message]:
    transcript = _Transcript()
    for item in items:
        transcript.add(item)
    transcript.close()
    return transcript.messages


def count_messages(items: Iterable[Item]) -> int:
    return len(messages_of(items))


def text_of_output(output: Iterable[Item]) -> str:
    """All that was said, whatever tools ran in between."""
    return "".join(
        content_text_with_refusals(item["content"]) for item in output if item["type"] == "message"
    )


def unanswered_calls(output: Iterable[Item]) -> list[dict[str, Any]]:
    """Those that end a turn: they are the client's to run."""
    messages = messages_of(output)
    return (messages[-1]["tool_calls"] or []) if messages else []


class _Transcript:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._names: dict[str, str] = {}  # of the tools, by call id
        self._reasoning: Item | None = None

    def add(self, item: Item) -> None:
        kind = item["type"]
        if kind == "reasoning":
            self.close()
            self._reasoning = item
        elif kind == "message":
            self._say(item, item["role"], content=_content(item["content"]))
        elif kind in CALLS:
            self._call(item, item["call_id"])
        elif kind in OUTPUTS:
            self._answer(item, item["call_id"], _content(item["output"]))
        elif kind == "mcp_call" and "id" in item:
            self._call(item, item["id"])
            answer = item.copy()
            answer["id"] = f"{item['id']}_output"
            self._answer(answer, item["id"], item.get("error") or item.get("output") or "")
        else:
            self._say(item, "assistant", display_kind=kind)

    def close(self) -> None:
        """Thoughts that no word followed are a message of their own."""
        if self._reasoning is not None:
            self._say(self._reasoning, "assistant")

    def _say(self, item: Item, role: str, **fields: Any) -> Message:
        message = {"id": item.get("id"), "role": role, **EMPTY, **fields}
        if role == "assistant" and self._reasoning is not None:
            thought = content_text_with_refusals(self._reasoning.get("summary") or [])
            message |= {"reasoning": thought, "reasoning_content": thought}
            self._reasoning = None
        self.messages.append(message)
        return message

    def _call(self, item: Item, call_id: str) -> None:
        """Calls belong to the words they follow."""
        last = self.messages[-1] if self.messages and self._reasoning is None else None
        if last is None or last["role"] != "assistant" or last["display_kind"]:
            last = self._say(item, "assistant")
        self._names[call_id] = item["name"]
        called = {"name": item["name"], "arguments": call_arguments(item)}
        last["tool_calls"] = [
            *(last["tool_calls"] or []),
            {"id": call_id, "type": "function", "function": called},
        ]

    def _answer(self, item: Item, call_id: str, content: Any) -> None:
        self.close()
        self._say(
            item, "tool", content=content, tool_call_id=call_id, tool_name=self._names.get(call_id)
        )


def _content(content: Content | None) -> Content:
    """A plain text where there is nothing else in it."""
    if isinstance(content, list) and not all(part["type"] in TEXT_TYPES for part in content):
        return content
    return content_text_with_refusals(content)
