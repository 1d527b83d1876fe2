"""The messages that a stored completion was asked with."""

from collections.abc import Sequence
from typing import Any

from gateway_app.api.chat.payloads import call_of
from responses_app.protocol.items import (
    CALLS,
    OUTPUTS,
    Content,
    ContentPart,
    Item,
    content_text,
)

StoredMessage = dict[str, Any]


def stored_messages(completion_id: str, items: Sequence[Item]) -> list[StoredMessage]:
    """Calls belong to the message of the assistant that they follow."""
    messages: list[StoredMessage] = []
    for item in items:
        kind = item["type"]
        if kind == "message":
            messages.append(_message(item["role"], item["content"]))
        elif kind in OUTPUTS:
            message = _message("tool", item["output"])
            message["tool_call_id"] = item["call_id"]
            messages.append(message)
        elif kind in CALLS:
            if not messages or messages[-1]["role"] != "assistant":
                messages.append(_message("assistant", None))
            messages[-1].setdefault("tool_calls", []).append(call_of(item))
    for index, message in enumerate(messages):
        message["id"] = f"{completion_id}-{index}"
    return messages


def _message(role: str, content: Content | None) -> StoredMessage:
    text: str | None = content_text(content)
    message: StoredMessage = {"id": "", "role": role, "name": None, "content_parts": None}
    if isinstance(content, list):
        refusal = "".join(part.get("refusal", "") for part in content)
        if refusal:
            message["refusal"] = refusal
        parts = [_part(part) for part in content if "refusal" not in part]
        if len(parts) > 1 or any(part["type"] != "text" for part in parts):
            message["content_parts"] = parts
    if role == "assistant" and not text:
        text = None
    message["content"] = text
    return message


def _part(part: ContentPart) -> dict[str, Any]:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    image: dict[str, Any] = {"url": part.get("image_url")}
    if "detail" in part:
        image["detail"] = part["detail"]
    return {"type": "image_url", "image_url": image}
