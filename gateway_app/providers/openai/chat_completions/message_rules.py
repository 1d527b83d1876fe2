"""Chat messages in the form that strict servers and chat templates demand."""

from typing import Any

from gateway_app.config.presets.facts import Preset
from gateway_app.providers.openai.call_ids import accepted_ids

Message = dict[str, Any]

SEPARATOR = "\n\n"
# Between a tool's result and the user's next message, where a server demands the assistant's word.
BRIDGE = "I have the result."
MERGED_ROLES = ("user", "assistant")


def follow_rules(messages: list[Message], preset: Preset) -> list[Message]:
    """The same conversation; the same messages always give the same result, so caches hold."""
    ruled: list[Message] = []
    for message in messages:
        if ruled and _can_be_merged(ruled[-1], message):
            ruled[-1] = _merged(ruled[-1], message)
            continue
        if preset.needs_assistant_after_tool and _is_user_after_tool(ruled, message):
            ruled.append({"role": "assistant", "content": BRIDGE})
        ruled.append(message)
    for message in ruled:
        if "tool_calls" in message and not message["content"]:
            message["content"] = preset.empty_content
    _rewrite_call_ids(ruled, preset.call_id_pattern)
    return ruled


def _can_be_merged(first: Message, second: Message) -> bool:
    """Templates of Gemma and Mistral raise at two messages of one role in a row."""
    return bool(first["role"] == second["role"] and first["role"] in MERGED_ROLES)


def _is_user_after_tool(before: list[Message], message: Message) -> bool:
    return bool(before) and message["role"] == "user" and before[-1]["role"] == "tool"


def _merged(first: Message, second: Message) -> Message:
    """Fields that only one of them has are kept, texts and lists of both are joined."""
    merged = first | second
    for name in first.keys() & second.keys() - {"role", "content"}:
        if isinstance(first[name], str | list):
            merged[name] = first[name] + second[name]
    merged["content"] = _joined(first["content"], second["content"])
    return merged


def _joined(first: Any, second: Any) -> Any:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return first + SEPARATOR + second
    return _parts(first) + _parts(second)


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)


def _rewrite_call_ids(messages: list[Message], pattern: str) -> None:
    """Give a call whose id the server refuses another one, the same in its result."""
    given = []
    for message in messages:
        if "tool_call_id" in message:
            given.append(message["tool_call_id"])
        for call in message.get("tool_calls") or ():
            given.append(call["id"])
    ids = accepted_ids(given, pattern)
    for message in messages:
        if "tool_call_id" in message:
            message["tool_call_id"] = ids[message["tool_call_id"]]
        for call in message.get("tool_calls") or ():
            call["id"] = ids[call["id"]]
