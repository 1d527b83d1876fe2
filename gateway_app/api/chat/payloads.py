"""A response as a chat completion: pure functions of its body."""

from collections.abc import Sequence
from typing import Any

from gateway_app.providers.openai.chat_completions.annotations import to_chat
from responses_app.protocol.errors import NotFound
from responses_app.protocol.failures import TurnFailed, failed_turn
from responses_app.protocol.ids import RESPONSE_PREFIX
from responses_app.protocol.items import CALLS, ContentPart, Item, TokenLogprob, content_text
from responses_app.protocol.reasoning_items import reasoning_text
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import LIMITS, OPEN, Status
from responses_app.requests.tools import client_tool_names

PREFIX = "chatcmpl-"


def completion_id(response_id: str) -> str:
    return PREFIX + response_id.removeprefix(RESPONSE_PREFIX)


def response_id_of(completion_id: str) -> str | None:
    if not completion_id.startswith(PREFIX):
        return None
    return RESPONSE_PREFIX + completion_id.removeprefix(PREFIX)


class CompletionNotFound(NotFound):
    code = "completion_not_found"

    def __init__(self, completion_id: str) -> None:
        super().__init__(f"Chat completion not found: {completion_id}", param="completion_id")


def completion(body: ResponseBody) -> dict[str, Any]:
    entries: list[TokenLogprob] = []
    for part in _parts(body):
        entries += part.get("logprobs") or ()
    choice = {
        "index": 0,
        "message": _message(body),
        "logprobs": logprobs(entries),
        "finish_reason": finish_reason(body),
    }
    payload = envelope(body, "chat.completion")
    payload["choices"] = [choice]
    payload["usage"] = usage(body)
    problem = problem_of(body)
    if problem is not None:
        payload["hermes"] = problem
    return payload


def envelope(body: ResponseBody, kind: str) -> dict[str, Any]:
    return {
        "id": completion_id(body["id"]),
        "object": kind,
        "created": body["created_at"],
        "model": body["model"],
        "service_tier": body["service_tier"],
        "system_fingerprint": None,
    }


def usage(body: ResponseBody) -> dict[str, Any] | None:
    counted = body["usage"]
    if counted is None:
        return None
    return {
        "prompt_tokens": counted["input_tokens"],
        "completion_tokens": counted["output_tokens"],
        "total_tokens": counted["total_tokens"],
        "prompt_tokens_details": counted["input_tokens_details"],
        "completion_tokens_details": counted["output_tokens_details"],
    }


def logprobs(entries: Sequence[TokenLogprob]) -> dict[str, Any] | None:
    if not entries:
        return None
    return {"content": entries, "refusal": None}


def finish_reason(body: ResponseBody) -> str | None:
    """One of OpenAI's reasons where the turn has one; ``error`` is Hermes' word for a failure."""
    status = body["status"]
    if status in OPEN:
        return None
    if status == Status.FAILED or _is_broken_off(body):
        return "error"
    if status == Status.INCOMPLETE:
        is_filtered = _incomplete_reason(body) == "content_filter"
        return "content_filter" if is_filtered else "length"
    if status == Status.COMPLETED and client_calls(body):
        return "tool_calls"
    return "stop"


def problem_of(body: ResponseBody) -> dict[str, Any] | None:
    """Why a completion is not whole, as Hermes' clients read it."""
    status = body["status"]
    if status in OPEN or status == Status.COMPLETED:
        return None
    is_failed = status == Status.FAILED
    reason = "cancelled" if status == Status.CANCELLED else _incomplete_reason(body)
    code = "output_truncated" if reason == "max_output_tokens" else "agent_error"
    details = body["incomplete_details"] or {}
    message = details.get("message") or f"The answer is not complete: {reason}."
    if is_failed:
        message = _error(body)["message"]
        reason = _error(body)["code"]
    return {
        "completed": False,
        "partial": not is_failed,
        "failed": is_failed,
        "error": message,
        "error_code": code,
        "reason": reason,
    }


def failure_of(body: ResponseBody, *, has_run_tools: bool = False) -> TurnFailed | None:
    """The error that takes the place of a completion, if there is no completion."""
    if body["status"] == Status.FAILED:
        return failed_turn(_error(body), has_run_tools=has_run_tools)
    if not _is_broken_off(body):
        return None
    problem = problem_of(body)
    assert problem is not None
    message = problem["error"]
    if body["store"] and body["output"]:
        message += f" The output so far is kept: GET /v1/responses/{body['id']}."
    return TurnFailed(message, "agent_incomplete", 502, has_run_tools=has_run_tools)


def _is_broken_off(body: ResponseBody) -> bool:
    """By a fault or by time, so that the output must not pass for a whole one."""
    return body["status"] == Status.INCOMPLETE and _incomplete_reason(body) not in LIMITS


def client_tool_names_of(body: ResponseBody) -> set[str]:
    return set(client_tool_names(body["tools"]))


def client_calls(body: ResponseBody) -> list[Item]:
    """The complete calls that the client is to run."""
    names = client_tool_names_of(body)
    calls = []
    for item in body["output"]:
        if item["type"] not in CALLS or item["name"] not in names:
            continue
        if item["status"] == "completed":
            calls.append(item)
    return calls


def call_without_arguments(item: Item) -> dict[str, Any]:
    if item["type"] == "function_call":
        function = {"name": item["name"], "arguments": ""}
        return {"id": item["call_id"], "type": "function", "function": function}
    custom = {"name": item["name"], "input": ""}
    return {"id": item["call_id"], "type": "custom", "custom": custom}


def call_of(item: Item) -> dict[str, Any]:
    call = call_without_arguments(item)
    if item["type"] == "function_call":
        call["function"]["arguments"] = item["arguments"]
    else:
        call["custom"]["input"] = item["input"]
    return call


def _message(body: ResponseBody) -> dict[str, Any]:
    calls = client_calls(body)
    refusal = "".join(part.get("refusal", "") for part in _parts(body)) or None
    content: str | None = content_text(_parts(body))
    # Null only beside something else: clients send a message back as it is.
    if not content and (calls or refusal):
        content = None
    annotations: list[dict[str, Any]] = []
    for part in _parts(body):
        annotations += map(to_chat, part.get("annotations") or ())
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content,
        "refusal": refusal,
        "annotations": annotations,
    }
    reasoning = _reasoning(body)
    if reasoning:
        message |= reasoning_fields(reasoning)
    if calls:
        message["tool_calls"] = [call_of(item) for item in calls]
    return message


def reasoning_fields(text: str) -> dict[str, str]:
    """Under both names: model servers use one or the other, and clients read either."""
    return {"reasoning_content": text, "reasoning": text}


def _reasoning(body: ResponseBody) -> str:
    texts: list[str] = []
    for item in body["output"]:
        if item["type"] == "reasoning":
            texts.append(reasoning_text(item))
    return "".join(texts)


def _parts(body: ResponseBody) -> list[ContentPart]:
    parts: list[ContentPart] = []
    for item in body["output"]:
        if item["type"] == "message" and isinstance(item["content"], list):
            parts += item["content"]
    return parts


def _error(body: ResponseBody) -> dict[str, str]:
    """The error of a failed response."""
    assert body["error"] is not None
    return body["error"]


def _incomplete_reason(body: ResponseBody) -> str:
    return str((body["incomplete_details"] or {}).get("reason", ""))
