"""Messages in the form of Hermes: bare texts, messages without a role, and images of chat."""

from typing import Any

from responses_app.requests.chat_content import CHAT_IMAGE, as_content
from responses_app.requests.content import content_schema
from responses_app.requests.items import OTHER_ROLES, message_schema
from responses_app.requests.json_schema import NULL, STRING, any_of, const, ref, request_object


def as_items(value: Any) -> Any:
    """Bare strings are messages, and a message without a role is the user's."""
    if not isinstance(value, list):
        return value
    return [_as_item(entry) for entry in value]


def _as_item(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"role": "user", "content": entry}
    if not isinstance(entry, dict):
        return entry
    if entry.get("role") is None and "content" in entry and _is_message(entry):
        return with_images(entry | {"role": "user"})
    return with_images(entry)


def _is_message(entry: dict[str, Any]) -> bool:
    return entry.get("type") in (None, "message")


def with_images(entry: dict[str, Any]) -> dict[str, Any]:
    if not _is_message(entry) or "content" not in entry:
        return entry
    return entry | {"content": as_content(entry["content"])}


ITEM = any_of(
    ref("InputItem"),
    message_schema("ChatPart", OTHER_ROLES),
    message_schema("OutputPart", ("assistant",), CHAT_IMAGE),
)
_NO_ROLE = request_object(
    {"type": const("message"), "role": NULL, "content": content_schema("ChatPart")}, ("content",)
)
ENTRY = any_of(STRING, ITEM, _NO_ROLE)
