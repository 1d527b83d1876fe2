"""The response object: every key, always."""

from typing import Any, TypedDict, cast

from responses_app.protocol.items import OUTPUTS, Item, content_text
from responses_app.protocol.status import Status


class UsageBody(TypedDict):
    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


class ResponseBody(TypedDict, total=False):
    """What every response has; the echo of its request is in ``ECHO_DEFAULTS``."""

    id: str
    object: str
    created_at: int
    status: str
    completed_at: int | None
    error: dict[str, str] | None
    incomplete_details: dict[str, str] | None
    model: str
    output: list[Item]
    usage: UsageBody | None
    background: bool
    instructions: str | None
    metadata: dict[str, str]
    previous_response_id: str | None
    service_tier: str
    store: bool
    tools: list[dict[str, Any]]


# The value of each field that the request leaves out: strict clients reject a missing key, and
# null for most of these.
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
    body: dict[str, Any] = {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": str(status),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
    }
    return cast(ResponseBody, body | ECHO_DEFAULTS | echo)


def json_body(body: ResponseBody) -> ResponseBody:
    """The object as JSON bodies have it: tool outputs as plain strings, not as parts."""
    plain = body.copy()
    plain["output"] = [_with_plain_output(item) for item in body["output"]]
    return plain


def _with_plain_output(item: Item) -> Item:
    if item["type"] not in OUTPUTS:
        return item
    plain = item.copy()
    plain["output"] = content_text(item["output"])
    return plain
