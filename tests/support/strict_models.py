"""The rules of model servers that refuse a history without the state they have sent."""

import json
from typing import Any

from tests.support.model_protocols import sse
from tests.support.model_steps import Call, Raw

PLACEHOLDER = "skip_thought_signature_validator"


def deepseek(body: dict[str, Any]) -> str | None:
    """api-docs.deepseek.com, thinking mode; the field must be there even when it is empty (deepseek-harness 739)."""
    for message in body["messages"]:
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


def gemini(body: dict[str, Any]) -> str | None:
    """ai.google.dev, thought signatures: the first call of each step has one."""
    for message in body["messages"]:
        if message.get("tool_calls") and not signature(message["tool_calls"][0]):
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def signature(call: dict[str, Any]) -> str | None:
    found: str | None = call.get("extra_content", {}).get("google", {}).get("thought_signature")
    return found


def signed_call(call: Call, signed: str, *, is_alone: bool = False) -> Raw:
    """A call as Gemini streams it, without an index; its signature may come in a delta of its own."""
    extra = {"extra_content": {"google": {"thought_signature": signed}}}
    function = {"name": call.name, "arguments": "".join(call.pieces)}
    whole = {"id": call.call_id, "type": "function", "function": function}
    fragments = [whole, extra] if is_alone else [whole | extra]
    return Raw(b"".join(_delta({"tool_calls": [fragment]}) for fragment in fragments))


def detail(**fields: Any) -> Raw:
    """A fragment of OpenRouter's reasoning_details."""
    return Raw(_delta({"reasoning_details": [fields]}))


def sealed(content: str, index: int = 0) -> Raw:
    """A whole reasoning item of a Responses upstream."""
    item = {"id": f"rs_{index}", "type": "reasoning", "summary": [], "encrypted_content": content}
    kind = "response.output_item.done"
    return Raw(sse({"type": kind, "output_index": index, "item": item}, kind))


CALL_CONTEXT: dict[str, Any] = {
    "namespace": "crm",
    "caller": {"type": "program", "caller_id": "prog_1"},
    "async": False,
}


def call_in_context(call_id: str, name: str, arguments: str = "{}") -> Raw:
    """A whole call of a Responses upstream, with fields of its own."""
    item = {"id": "fc_0", "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    kind = "response.output_item.done"
    return Raw(sse({"type": kind, "output_index": 0, "item": item | CALL_CONTEXT}, kind))


def _delta(delta: dict[str, Any]) -> bytes:
    return sse({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def has(value: Any, word: str) -> bool:
    return word in json.dumps(value)
