"""The response object: every key, always."""

from typing import Any

from responses_app.protocol.items import OUTPUTS, Item
from responses_app.protocol.status import Status

ResponseBody = dict[str, Any]

# What the object says where the request was silent; strict clients reject a missing key,
# and null for most of these.
ECHO_DEFAULTS: dict[str, Any] = {
    "background": False,
    "conversation": None,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def initial_body(
    response_id: str, *, model: str, created_at: int, status: Status, echo: dict[str, Any]
) -> ResponseBody:
    output: list[Item] = []
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": str(status),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": output,
        "usage": None,
        **ECHO_DEFAULTS,
        **echo,
    }


def json_body(body: ResponseBody) -> ResponseBody:
    """The object as JSON bodies show it: tool outputs as plain strings, not as parts."""
    return {**body, "output": [_plain_output(item) for item in body["output"]]}


def _plain_output(item: Item) -> Item:
    if item["type"] not in OUTPUTS or isinstance(item["output"], str):
        return item
    return {**item, "output": "".join(part.get("text", "") for part in item["output"])}
