"""``input``: a string or items of many kinds, each brought into one shape."""

from collections.abc import Callable
from typing import Any, cast

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import ARGUMENTS_OF, COMPACTION, ContentPart, Item
from responses_app.requests.content import read_content, read_tool_output
from responses_app.requests.fields import (
    an_object,
    array,
    choice,
    optional,
    short_text,
    text,
    wrong_type,
)
from responses_app.sealing import NotSealedHere
from responses_app.services.history.compaction import is_foreign, open_compaction
from responses_app.services.profiles import is_any_upstream_of_responses

ROLES = ("user", "assistant", "system", "developer")
MAX_ITEMS = 10_000
MAX_ID_CHARS = 256
SUMMARY_TYPES = ("summary_text",)
REASONING_TYPES = ("reasoning_text", "text")  # Codex sends both
# Kinds that clients send back and only an upstream with the Responses API can use.
KEPT_TYPES = frozenset(
    {
        *("apply_patch_call", "apply_patch_call_output", "code_interpreter_call"),
        *("computer_call", "computer_call_output", "file_search_call"),
        *("image_generation_call", "local_shell_call", "local_shell_call_output"),
        *("mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools"),
        *(
            "shell_call",
            "shell_call_output",
            "tool_search_call",
            "tool_search_output",
            "web_search_call",
        ),
    }
)


def read_input(value: Any, owner_id: int, name: str = "input") -> list[Item]:
    """What is sealed in it must have been sealed for this owner."""
    if isinstance(value, str):
        return [_message("user", [{"type": "input_text", "text": value}])]
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of items")
    if not value:
        raise InvalidRequest(f"{name} must not be empty.", param=name)
    if len(value) > MAX_ITEMS:
        raise InvalidRequest(f"{name} may hold at most {MAX_ITEMS} items.", param=name)
    items = [_read_item(item, f"{name}[{index}]") for index, item in enumerate(value)]
    for index, item in enumerate(items):
        if item["type"] == COMPACTION:
            _check_compaction(item, owner_id, f"{name}[{index}].encrypted_content")
    return items


def is_kept(item: Item) -> bool:
    """Does nothing here act on it?"""
    return item["type"] in KEPT_TYPES or is_foreign(item)


def _read_item(item: Any, name: str) -> Item:
    kind = _kind_of(an_object(item, name), name)
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(item, name)
    if kind in KEPT_TYPES:
        return _as_sent(item)
    raise InvalidRequest(
        f"{name}.type is {kind!r}, which this server does not know.",
        param=f"{name}.type",
        code="unsupported_item_type",
    )


def _kind_of(item: dict[str, Any], name: str) -> str:
    given = item.get("type")
    if given is not None:
        return text(given, f"{name}.type")
    return "item_reference" if item.keys() <= {"id", "type"} else "message"


def _as_sent(item: dict[str, Any]) -> Item:
    """Kept with every field; an id that is no text could not be looked up, and ours replaces it."""
    kept = dict(item)
    if not isinstance(item.get("id"), str):
        kept.pop("id", None)
    return cast(Item, kept)


def _message(role: str, content: list[ContentPart]) -> Item:
    return {"type": "message", "status": "completed", "role": role, "content": content}


def _read_message(item: dict[str, Any], name: str) -> Item:
    role = choice(*ROLES)(item.get("role"), f"{name}.role")
    phase = optional(text)(item.get("phase"), f"{name}.phase")
    message = _message(role, read_content(item.get("content"), role, f"{name}.content"))
    if phase is not None:
        message["phase"] = phase
    return message


def _read_call(item: dict[str, Any], name: str) -> Item:
    kind = item["type"]
    written = ARGUMENTS_OF[kind]
    call = {
        "type": kind,
        "status": "incomplete" if item.get("status") == "incomplete" else "completed",
        "call_id": _id(item.get("call_id"), f"{name}.call_id"),
        "name": _id(item.get("name"), f"{name}.name"),
        written: text(item.get(written), f"{name}.{written}"),
    }
    return cast(Item, call)


def _read_call_output(item: dict[str, Any], name: str) -> Item:
    return {
        "type": item["type"],
        "status": "completed",
        "call_id": _id(item.get("call_id"), f"{name}.call_id"),
        "output": read_tool_output(item.get("output"), f"{name}.output"),
    }


def _read_mcp_call(item: dict[str, Any], name: str) -> Item:
    for field in ("server_label", "name", "arguments"):
        text(item.get(field), f"{name}.{field}")
    optional(text)(item.get("output"), f"{name}.output")
    error = item.get("error")
    if error is not None and not isinstance(error, str | dict):
        raise wrong_type(f"{name}.error", "a string or an object")
    return _as_sent(item)


def _read_reasoning(item: dict[str, Any], name: str) -> Item:
    read: Item = {"type": "reasoning", "status": "completed"}
    read["summary"] = _texts(item.get("summary"), SUMMARY_TYPES, f"{name}.summary") or []
    content = _texts(item.get("content"), REASONING_TYPES, f"{name}.content")
    if content is not None:
        read["content"] = content
    sealed = optional(text)(item.get("encrypted_content"), f"{name}.encrypted_content")
    if sealed is not None:
        read["encrypted_content"] = sealed
    return read


def _texts(value: Any, kinds: tuple[str, ...], name: str) -> list[ContentPart] | None:
    if value is None:
        return None
    parts = array(value, name, "an array of text parts")
    for index, part in enumerate(parts):
        path = f"{name}[{index}]"
        choice(*kinds)(an_object(part, path).get("type"), f"{path}.type")
        text(part.get("text"), f"{path}.text")
    return parts


def _read_compaction(item: dict[str, Any], name: str) -> Item:
    content = text(item.get("encrypted_content"), f"{name}.encrypted_content")
    compaction = cast(Item, item)
    if is_foreign(compaction):
        return compaction.copy()
    return {"type": COMPACTION, "encrypted_content": content}


def _check_compaction(item: Item, owner_id: int, name: str) -> None:
    if is_foreign(item) and is_any_upstream_of_responses():
        return  # the upstream's own, for all we know
    try:
        open_compaction(owner_id, item["encrypted_content"])
    except NotSealedHere:
        raise InvalidRequest(
            f"{name} is not as this server made it for you: it was altered or cut, or is somebody else's.",
            param=name,
            code="invalid_encrypted_content",
        ) from None


def _read_reference(item: dict[str, Any], name: str) -> Item:
    return {"type": "item_reference", "id": _id(item.get("id"), f"{name}.id")}


_id = short_text(MAX_ID_CHARS)
_READERS: dict[str, Callable[[dict[str, Any], str], Item]] = {
    "message": _read_message,
    "function_call": _read_call,
    "function_call_output": _read_call_output,
    "custom_tool_call": _read_call,
    "custom_tool_call_output": _read_call_output,
    "mcp_call": _read_mcp_call,
    "reasoning": _read_reasoning,
    COMPACTION: _read_compaction,
    "item_reference": _read_reference,
}
