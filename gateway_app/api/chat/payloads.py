"""A response as a chat completion: pure functions of its body."""

from collections.abc import Sequence
from typing import Any

from responses_app.protocol.errors import NotFound
from responses_app.protocol.failures import TurnFailed, failed_turn
from responses_app.protocol.ids import RESPONSE_PREFIX
from responses_app.protocol.items import CALLS, ContentPart, Item, TokenLogprob, content_text
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import OPEN, Status
from responses_app.requests.options import client_tool_names

PREFIX = "chatcmpl-"
_FAULTS = ("upstream_cut", "tool_call_dropped", "server_interrupted")  # ends that are nobody's wish


def completion_id(response_id: str) -> str:
    return PREFIX + response_id.removeprefix(RESPONSE_PREFIX)


def response_id_of(completion: str) -> str | None:
    return (
        RESPONSE_PREFIX + completion.removeprefix(PREFIX) if completion.startswith(PREFIX) else None
    )


class CompletionNotFound(NotFound):
    code = "completion_not_found"

    def __init__(self, completion: str) -> None:
        super().__init__(f"Chat completion not found: {completion}", param="completion_id")


def completion(body: ResponseBody) -> dict[str, Any]:
    sure = logprobs([entry for part in _parts(body) for entry in part.get("logprobs") or ()])
    choice = {
        "index": 0,
        "message": _message(body),
        "logprobs": sure,
        "finish_reason": finish_reason(body),
    }
    made = {**envelope(body, "chat.completion"), "choices": [choice], "usage": usage(body)}
    trouble = trouble_of(body)
    return made if trouble is None else {**made, "hermes": trouble}


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
    return {"content": entries, "refusal": None} if entries else None


def finish_reason(body: ResponseBody) -> str | None:
    """One of OpenAI's where the turn has one; ``error`` is Hermes' word for a failure."""
    if body["status"] in OPEN:
        return None
    if body["status"] == Status.FAILED:
        return "error"
    if body["status"] == Status.INCOMPLETE:
        return "content_filter" if _incomplete_reason(body) == "content_filter" else "length"
    return "tool_calls" if client_calls(body) and body["status"] == Status.COMPLETED else "stop"


def trouble_of(body: ResponseBody) -> dict[str, Any] | None:
    """Why an answer is not whole, as Hermes' clients read it."""
    if body["status"] in (*OPEN, Status.COMPLETED):
        return None
    is_failed = body["status"] == Status.FAILED
    reason = "cancelled" if body["status"] == Status.CANCELLED else _incomplete_reason(body)
    said = (body["incomplete_details"] or {}).get(
        "message"
    ) or f"The answer is not complete: {reason}."
    code = "output_truncated" if reason == "max_output_tokens" else "agent_error"
    return {
        "completed": False,
        "partial": not is_failed,
        "failed": is_failed,
        "error": _error(body)["message"] if is_failed else said,
        "error_code": code,
        "reason": _error(body)["code"] if is_failed else reason,
    }


def failure_of(body: ResponseBody, *, has_run_tools: bool = False) -> TurnFailed | None:
    """The error in place of an answer, if that is what became of it."""
    if body["status"] == Status.FAILED:
        return failed_turn(_error(body), has_run_tools=has_run_tools)
    is_empty = not content_text(_parts(body)) and not client_calls(body)
    if body["status"] == Status.INCOMPLETE and _incomplete_reason(body) in _FAULTS and is_empty:
        said = (trouble_of(body) or {})["error"]
        return TurnFailed(said, "agent_incomplete", 502, has_run_tools=has_run_tools)
    return None


def client_names(body: ResponseBody) -> set[str]:
    return set(client_tool_names(body["tools"]))


def client_calls(body: ResponseBody) -> list[Item]:
    """The calls that the client is to run."""
    names = client_names(body)
    return [
        item
        for item in body["output"]
        if item["type"] in CALLS and item["name"] in names and item["status"] == "completed"
    ]


def call_head(item: Item) -> dict[str, Any]:
    """A call without what the model wrote in it."""
    kind, written = (
        ("function", "arguments") if item["type"] == "function_call" else ("custom", "input")
    )
    return {"id": item["call_id"], "type": kind, kind: {"name": item["name"], written: ""}}


def _message(body: ResponseBody) -> dict[str, Any]:
    calls, refusal = (
        client_calls(body),
        "".join(part.get("refusal", "") for part in _parts(body)) or None,
    )
    message: dict[str, Any] = {
        "role": "assistant",
        # Null only beside something else: clients send a message back as it is.
        "content": content_text(_parts(body)) or (None if calls or refusal else ""),
        "refusal": refusal,
        "annotations": [note for part in _parts(body) for note in part.get("annotations") or ()],
    }
    thought = "".join(content_text(item.get("summary")) for item in body["output"])
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [_call(item) for item in calls]
    return message


def _call(item: Item) -> dict[str, Any]:
    head = call_head(item)
    head[head["type"]] |= {name: item[name] for name in ("arguments", "input") if name in item}
    return head


def _parts(body: ResponseBody) -> list[ContentPart]:
    parts: list[ContentPart] = []
    for item in body["output"]:
        if item["type"] == "message" and isinstance(item["content"], list):
            parts += item["content"]
    return parts


def _error(body: ResponseBody) -> dict[str, str]:
    """Of a failed response."""
    assert body["error"] is not None
    return body["error"]


def _incomplete_reason(body: ResponseBody) -> str:
    return str((body["incomplete_details"] or {}).get("reason", ""))
