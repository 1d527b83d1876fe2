"""``/v1/chat/completions``, described."""

from typing import Any

from gateway_app.api.chat import openapi_stored
from gateway_app.api.chat.openapi_request import FIELDS
from gateway_app.api.chat.requests import DETAIL_HEADER, tool_detail
from gateway_app.api.runs import openapi as runs
from responses_app.protocol import events
from responses_app.requests.create import SERVICE_TIERS
from responses_app.requests.headers import SESSION_HEADER, USAGE_HEADER
from responses_app.requests.json_schema import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NULL,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    enum,
    nullable,
    ref,
    request_object,
    shape,
    string,
    union,
)
from responses_app.schema.builders import (
    DONE_FRAME,
    WHOLE_SECONDS,
    WORD,
    Paths,
    frame,
    list_of,
    names_of,
    paging,
    query,
    stream,
)
from responses_app.schema.items import METADATA
from responses_app.schema.operations import (
    generating,
    json,
    operation,
    response,
)
from responses_app.schema.responses import ADMITTED_HEADERS

# -- what is returned -------------------------------------------------------------------
_USAGE = shape(
    {
        "prompt_tokens": INTEGER,
        "completion_tokens": INTEGER,
        "total_tokens": INTEGER,
        "prompt_tokens_details": shape({"cached_tokens": INTEGER, "cache_write_tokens": INTEGER}),
        "completion_tokens_details": shape({"reasoning_tokens": INTEGER}),
    }
)
_PROBLEM = shape(
    {
        "completed": const(False),
        "partial": BOOLEAN,
        "failed": BOOLEAN,
        "error": STRING,
        "error_code": enum(("output_truncated", "agent_error")),
        "reason": STRING,
    },
    description="Why the answer is incomplete.",
)
CALL = union(
    "type",
    {
        "function": shape({"id": STRING, "function": shape({"name": STRING, "arguments": STRING})}),
        "custom": shape({"id": STRING, "custom": shape({"name": STRING, "input": STRING})}),
    },
)
_MESSAGE = shape(
    {
        "role": const("assistant"),
        "content": nullable(STRING),
        "refusal": nullable(STRING),
        "annotations": array_of(OPEN_OBJECT),
        "reasoning_content": STRING,
        "reasoning": string("The same text as reasoning_content."),
        "tool_calls": array_of(CALL),
    },
    ("reasoning_content", "reasoning", "tool_calls"),
)
_FINISH = nullable(enum(("stop", "length", "tool_calls", "content_filter", "error")))
_CALL_DELTA = shape(
    {
        "index": INTEGER,
        "id": STRING,
        "type": enum(("function", "custom")),
        "function": shape({"name": STRING, "arguments": STRING}, ("name",)),
        "custom": shape({"name": STRING, "input": STRING}, ("name",)),
    },
    ("id", "type", "function", "custom"),
)
_DELTA_FIELDS: dict[str, Schema] = {
    "role": const("assistant"),
    "content": STRING,
    "reasoning_content": STRING,
    "reasoning": STRING,
    "refusal": STRING,
    "tool_calls": array_of(_CALL_DELTA),
}


def _envelope(kind: str) -> dict[str, Schema]:
    return {
        "id": string("chatcmpl-…"),
        "object": const(kind),
        "created": WHOLE_SECONDS,
        "model": STRING,
        "service_tier": enum(SERVICE_TIERS),
        "system_fingerprint": NULL,
    }


def _choice(name: str, content: Schema) -> Schema:
    logprobs = shape({"content": array_of(ref("Logprob")), "refusal": NULL})
    return shape(
        {
            "index": const(0),
            name: content,
            "logprobs": nullable(logprobs),
            "finish_reason": _FINISH,
        }
    )


_COMPLETION = _envelope("chat.completion")
_COMPLETION |= {
    "choices": array_of(_choice("message", _MESSAGE), minItems=1, maxItems=1),
    "usage": nullable(ref("ChatUsage")),
    "hermes": _PROBLEM,
}
_DELTA = shape(_DELTA_FIELDS, _DELTA_FIELDS)
_CHUNK = _envelope("chat.completion.chunk")
_CHUNK |= {
    "choices": array_of(_choice("delta", _DELTA), maxItems=1),
    "usage": nullable(ref("ChatUsage")),
    "hermes": _PROBLEM,
}
# A chunk without choices: it reports something else than the answer.
_REPORT = _envelope("chat.completion.chunk")
_REPORT |= {
    "choices": array_of(OPEN_OBJECT, maxItems=0),
    "usage": NULL,
    "toolCallId": STRING,
}
_PROGRESS: dict[str, Schema] = _REPORT | {
    "tool": STRING,
    "emoji": STRING,
    "label": STRING,
    "status": enum(("running", "completed")),
    "argumentChars": INTEGER,
    "input": ANYTHING,
    "output": STRING,
}
SCHEMAS: dict[str, Schema] = {
    "CreateChatCompletion": request_object(FIELDS, ("messages",)),
    "ChatUsage": _USAGE,
    "ChatCompletion": shape(_COMPLETION, ("hermes",)),
    "StoredChatCompletion": shape(_COMPLETION | {"metadata": METADATA}, ("hermes",)),
    "ChatCompletionList": list_of(ref("StoredChatCompletion")),
    "ChatCompletionChunk": shape(_CHUNK, ("usage", "hermes")),
    "ToolProgress": shape(
        _PROGRESS,
        ("usage", "emoji", "label", "argumentChars", "input", "output"),
        "A tool that the server runs starts or ends, or the model writes its arguments. "
        f"input and output are there with {DETAIL_HEADER}: full.",
    ),
    "ChatApprovalRequest": shape(
        _REPORT | {"approval": shape(runs.APPROVAL_REQUEST)},
        ("usage",),
        "A tool call waits for an approval.",
    ),
    "ChatApprovalResponded": shape(
        _REPORT | {"approval": shape(runs.APPROVAL_ANSWER)}, ("usage",), "It has been decided."
    ),
}
_STREAM: dict[str, Any] = stream(
    frame(any_of(ref("ChatCompletionChunk"), ref("Error"))),
    frame(ref("ToolProgress"), event=const(events.CHAT_TOOL_PROGRESS)),
    frame(ref("ChatApprovalRequest"), event=const(events.CHAT_APPROVAL_REQUEST)),
    frame(ref("ChatApprovalResponded"), event=const(events.CHAT_APPROVAL_RESPONDED)),
    DONE_FRAME,
)
_METADATA_FILTER = query(
    "metadata",
    {"type": "object", "propertyNames": WORD, "additionalProperties": WORD},
    "Only those with these pairs: `metadata[key]=value`.",
)
_METADATA_FILTER |= {"style": "deepObject", "explode": True}
_DETAIL = {
    "name": DETAIL_HEADER,
    "in": "header",
    "schema": tool_detail.schema | {"default": "short"},
}
SCHEMAS |= openapi_stored.schemas(CALL)
PATHS: Paths = {
    "/v1/chat/completions": {
        "post": generating(
            "create_chat_completion",
            "Make a chat completion",
            (
                200,
                response(
                    json(ref("ChatCompletion")) | _STREAM,
                    "The completion, or its chunks with `stream`. "
                    + names_of(
                        (
                            events.CHAT_TOOL_PROGRESS,
                            events.CHAT_APPROVAL_REQUEST,
                            events.CHAT_APPROVAL_RESPONDED,
                        )
                    ),
                    (
                        *ADMITTED_HEADERS,
                        USAGE_HEADER,
                        "X-Hermes-Completed",
                        "X-Hermes-Partial",
                        "X-Hermes-Error",
                    ),
                ),
            ),
            body="CreateChatCompletion",
            headers=(SESSION_HEADER,),
            parameters=[_DETAIL],
            errors=("429", "502"),
        ),
        "get": operation(
            "list_chat_completions",
            "Your completions with store: true",
            (200, response(json(ref("ChatCompletionList")))),
            parameters=[
                *paging(order="asc"),
                query("model", WORD, "Only those of this model."),
                _METADATA_FILTER,
            ],
        ),
    },
}
PATHS |= openapi_stored.PATHS
