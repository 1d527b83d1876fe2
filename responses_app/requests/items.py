"""``input``: a string or items, brought into one shape."""

from typing import Any

from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.requests.fields import text, wrong_type

ROLES = ("user", "assistant", "system", "developer")
MAX_ITEMS = 10_000


def read_input(value: Any, name: str = "input") -> list[Item]:
    if isinstance(value, str):
        return [_message("user", [{"type": "input_text", "text": value}])]
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of items")
    if not value:
        raise InvalidRequest(f"{name} must not be empty.", param=name)
    if len(value) > MAX_ITEMS:
        raise InvalidRequest(f"{name} may hold at most {MAX_ITEMS} items.", param=name)
    return [_read_item(item, f"{name}[{index}]") for index, item in enumerate(value)]


def _read_item(item: Any, name: str) -> Item:
    if not isinstance(item, dict):
        raise wrong_type(name, "an object")
    kind = item.get("type") or "message"
    if kind != "message":
        raise InvalidRequest(
            f"{name}.type is {kind!r}; this server takes message items.",
            param=f"{name}.type",
            code="unsupported_item_type",
        )
    role = item.get("role")
    if role not in ROLES:
        raise InvalidRequest(f"{name}.role must be one of {', '.join(ROLES)}.", param=f"{name}.role")
    return _message(role, _read_content(item.get("content"), role, f"{name}.content"))


def _read_content(content: Any, role: str, name: str) -> list[Item]:
    own_type = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, str):
        return [{"type": own_type, "text": content}]
    if not isinstance(content, list) or not content:
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, own_type, f"{name}[{index}]") for index, part in enumerate(content)]


def _read_part(part: Any, own_type: str, name: str) -> Item:
    if not isinstance(part, dict):
        raise wrong_type(name, "an object")
    if part.get("type") not in ("input_text", "output_text", "text"):
        raise InvalidRequest(
            f"{name}.type is {part.get('type')!r}; this server takes text parts.",
            param=f"{name}.type",
            code="unsupported_content_type",
        )
    return {"type": own_type, "text": text(part.get("text"), f"{name}.text")}


def _message(role: str, content: list[Item]) -> Item:
    return {"type": "message", "status": "completed", "role": role, "content": content}
