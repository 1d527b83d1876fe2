"""``messages``: each as the input items it stands for."""

from dataclasses import dataclass
from typing import Any, cast

from gateway_app.api.content import as_content
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import an_object, choice, optional, text
from responses_app.requests.input_items import MAX_ITEMS
from responses_app.requests.structures import read_array

ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_FIELDS = ("name", "reasoning_content", "refusal", "tool_call_id")
GUIDING_ROLES = ("system", "developer")
WRITTEN = {
    "function": "arguments",
    "custom": "input",
}  # kind of a call -> what the model wrote in it


@dataclass(frozen=True)
class Sent:
    """An input item, not checked yet, and where in the request it comes from."""

    item: Item
    role: str
    path: str


def read_messages(value: Any) -> list[Sent]:
    """What the shape of a message says; its values are checked as those of any input item."""
    messages = read_array(value, "messages", "an array of messages")
    if not 0 < len(messages) <= MAX_ITEMS:
        raise InvalidRequest(f"messages must hold 1 to {MAX_ITEMS} messages.", param="messages")
    sent: list[Sent] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = choice(*ROLES)(an_object(message, path).get("role"), f"{path}.role")
        for field in TEXT_FIELDS:
            optional(text)(message.get(field), f"{path}.{field}")
        sent += (
            _said(message, path)
            if role == "assistant"
            else [Sent(_told(message, role, sent), role, path)]
        )
    return sent


def guidance(sent: list[Sent]) -> str | None:
    """The texts of system and developer messages."""
    texts = [text_of(one.item) for one in sent if one.role in GUIDING_ROLES]
    return "\n\n".join(texts) if texts else None


def newest(sent: list[Sent]) -> list[Sent]:
    """What follows the last answer: all that is new where the server supplies the history."""
    answers = [index for index, one in enumerate(sent) if one.role == "assistant"]
    rest = sent[answers[-1] + 1 :] if answers else sent
    new = [one for one in rest if one.role not in GUIDING_ROLES]
    if not new:
        raise InvalidRequest(
            "messages must end with a message of the user or of a tool.", param="messages"
        )
    return new


def text_of(item: Item) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in parts
    )


def _told(message: dict[str, Any], role: str, before: list[Sent]) -> Item:
    if role != "tool":
        return {"type": "message", "role": role, "content": as_content(message.get("content"))}
    call_id: Any = message.get("tool_call_id")  # the readers of items check it
    is_custom = any(
        one.item["type"] == "custom_tool_call" and one.item["call_id"] == call_id for one in before
    )
    kind = "custom_tool_call_output" if is_custom else "function_call_output"
    return {"type": kind, "call_id": call_id, "output": as_content(message.get("content"))}


def _said(message: dict[str, Any], path: str) -> list[Sent]:
    """An answer of the model: what it said, then its calls."""
    calls = _read_calls(message.get("tool_calls"), f"{path}.tool_calls")
    content, refusal = as_content(message.get("content")), message.get("refusal")
    if not content and refusal is not None:
        content = [{"type": "refusal", "refusal": refusal}]
    said = [Sent({"type": "message", "role": "assistant", "content": content}, "assistant", path)]
    made = [_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]
    return [*([] if made and not content else said), *made]


def _read_calls(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    return read_array(value, name)


def _call(call: Any, path: str) -> Sent:
    given = an_object(call, path)
    kind = optional(choice(*WRITTEN))(given.get("type"), f"{path}.type") or "function"
    inner = an_object(given.get(kind), f"{path}.{kind}")
    written = WRITTEN[kind]
    item = {
        "type": "function_call" if kind == "function" else "custom_tool_call",
        "call_id": given.get("id"),
        "name": inner.get("name"),
        written: inner.get(written),
    }
    return Sent(cast(Item, item), "assistant", path)
