"""``messages``: each as the input items it stands for."""

from dataclasses import dataclass
from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.chat_content import as_content
from responses_app.requests.fields import an_object, choice, optional, text
from responses_app.requests.input_items import MAX_ITEMS
from responses_app.requests.structures import read_array

Fields = dict[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool")
INSTRUCTION_ROLES = ("system", "developer")
TEXT_FIELDS = ("name", "reasoning", "reasoning_content", "refusal", "tool_call_id")
CALL_KINDS = ("function", "custom")


@dataclass(frozen=True)
class SentItem:
    """An input item that is not checked yet, and its location in the request."""

    item: Fields
    role: str
    path: str


def read_messages(value: Any) -> list[SentItem]:
    """Checks the shape of the messages; their values are checked as those of any input item."""
    messages = read_array(value, "messages", "an array of messages")
    if not 0 < len(messages) <= MAX_ITEMS:
        raise InvalidRequest(f"messages must hold 1 to {MAX_ITEMS} messages.", param="messages")
    sent: list[SentItem] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = choice(*ROLES)(an_object(message, path).get("role"), f"{path}.role")
        for field in TEXT_FIELDS:
            optional(text)(message.get(field), f"{path}.{field}")
        if role == "assistant":
            sent += _assistant_items(message, path)
        elif role == "tool":
            sent.append(SentItem(_tool_output(message, sent), role, path))
        else:
            content = as_content(message.get("content"))
            item = {"type": "message", "role": role, "content": content}
            sent.append(SentItem(item, role, path))
    return sent


def instructions_of(sent: list[SentItem]) -> str | None:
    """The texts of system and developer messages."""
    texts = [text_of(one.item) for one in sent if one.role in INSTRUCTION_ROLES]
    if not texts:
        return None
    return "\n\n".join(texts)


def new_items(sent: list[SentItem]) -> list[SentItem]:
    """The items after the last answer: all that is new where the server has the history."""
    new: list[SentItem] = []
    for one in sent:
        if one.role == "assistant":
            new.clear()
        elif one.role not in INSTRUCTION_ROLES:
            new.append(one)
    if not new:
        raise InvalidRequest(
            "messages must end with a message of the user or of a tool.", param="messages"
        )
    return new


def text_of(item: Fields) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    joined = ""
    for part in content:
        if isinstance(part, dict):
            part = part.get("text", "")
        joined += str(part)
    return joined


def _tool_output(message: Fields, before: list[SentItem]) -> Fields:
    call_id = message.get("tool_call_id")
    kind = "function_call_output"
    for one in before:
        if one.item["type"] == "custom_tool_call" and one.item["call_id"] == call_id:
            kind = "custom_tool_call_output"
    return {"type": kind, "call_id": call_id, "output": as_content(message.get("content"))}


def _assistant_items(message: Fields, path: str) -> list[SentItem]:
    """The text of an answer, then its calls."""
    calls: list[Any] = []
    if message.get("tool_calls") is not None:
        calls = read_array(message["tool_calls"], f"{path}.tool_calls")
    content = as_content(message.get("content"))
    refusal = message.get("refusal")
    if not content and refusal is not None:
        content = [{"type": "refusal", "refusal": refusal}]
    sent: list[SentItem] = []
    if content or not calls:
        item = {"type": "message", "role": "assistant", "content": content}
        sent.append(SentItem(item, "assistant", path))
    for index, call in enumerate(calls):
        call_path = f"{path}.tool_calls[{index}]"
        sent.append(SentItem(_call_item(call, call_path), "assistant", call_path))
    return sent


def _call_item(call: Any, path: str) -> Fields:
    given = an_object(call, path)
    kind = optional(choice(*CALL_KINDS))(given.get("type"), f"{path}.type") or "function"
    inner = an_object(given.get(kind), f"{path}.{kind}")
    if kind == "function":
        return {
            "type": "function_call",
            "call_id": given.get("id"),
            "name": inner.get("name"),
            "arguments": inner.get("arguments"),
        }
    return {
        "type": "custom_tool_call",
        "call_id": given.get("id"),
        "name": inner.get("name"),
        "input": inner.get("input"),
    }
