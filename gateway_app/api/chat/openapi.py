"""``/v1/chat/completions``, described."""

from typing import Any

from gateway_app.api.chat.openapi_request import FIELDS
from gateway_app.api.chat.requests import DETAIL_HEADER
from gateway_app.api.runs import openapi as runs
from responses_app.protocol import events
from responses_app.requests.headers import SESSION_HEADER
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
from responses_app.schema.requests import TIERS
from responses_app.schema.responses import ADMITTED_HEADERS

# -- what is answered -------------------------------------------------------------------
_USAGE = shape(
    {
        "prompt_tokens": INTEGER,
        "completion_tokens": INTEGER,
        "total_tokens": INTEGER,
        "prompt_tokens_details": shape({"cached_tokens": INTEGER, "cache_write_tokens": INTEGER}),
        "completion_tokens_details": shape({"reasoning_tokens": INTEGER}),
    }
)
_TROUBLE = shape(
    {
        "completed": const(False),
        "partial": BOOLEAN,
        "failed": BOOLEAN,
        "error": STRING,
        "error_code": enum(("output_truncated", "agent_error")),
        "reason": STRING,
    },
    description="Why the answer is not whole.",
)
_CALL = union(
    "type",
    {
        "function": shape({"id": STRING, "function": shape({"name": STRING, "arguments": STRING})}),
        "custom": shape({"id": STRING, "custom": shape({"name": STRING, "input": STRING})}),
    },
)
_ANSWERED = shape(
    {
        "role": const("assistant"),
        "content": nullable(STRING),
        "refusal": nullable(STRING),
        "annotations": array_of(OPEN_OBJECT),
        "reasoning_content": STRING,
        "tool_calls": array_of(_CALL),
    },
    ("reasoning_content", "tool_calls"),
)
_FINISH = nullable(enum(("stop", "length", "tool_calls", "content_filter", "error")))
_CALL_NAME = {"name": STRING}
_CALL_DELTA = shape(
    {
        "index": INTEGER,
        "id": STRING,
        "type": enum(("function", "custom")),
        "function": shape({**_CALL_NAME, "arguments": STRING}, ("name",)),
        "custom": shape({**_CALL_NAME, "input": STRING}, ("name",)),
    },
    ("id", "type", "function", "custom"),
)
_DELTA_FIELDS: dict[str, Schema] = {
    "role": const("assistant"),
    "content": STRING,
    "reasoning_content": STRING,
    "refusal": STRING,
    "tool_calls": array_of(_CALL_DELTA),
}


def _envelope(kind: str) -> dict[str, Schema]:
    return {
        "id": string("chatcmpl-…"),
        "object": const(kind),
        "created": WHOLE_SECONDS,
        "model": STRING,
        "service_tier": enum(TIERS),
        "system_fingerprint": NULL,
    }


def _choice(name: str, said: Schema) -> Schema:
    sure = shape({"content": array_of(ref("Logprob")), "refusal": NULL})
    return shape(
        {"index": const(0), name: said, "logprobs": nullable(sure), "finish_reason": _FINISH}
    )


_COMPLETION: dict[str, Schema] = {
    **_envelope("chat.completion"),
    "choices": array_of(_choice("message", _ANSWERED), minItems=1, maxItems=1),
    "usage": nullable(ref("ChatUsage")),
    "hermes": _TROUBLE,
}
# Beside the answer: a chunk without choices.
_BESIDE: dict[str, Schema] = {
    **_envelope("chat.completion.chunk"),
    "choices": array_of(OPEN_OBJECT, maxItems=0),
    "usage": NULL,
    "toolCallId": STRING,
}
_PROGRESS: dict[str, Schema] = {
    **_BESIDE,
    "tool": STRING,
    "emoji": STRING,
    "label": STRING,
    "status": enum(("running", "completed")),
    "input": ANYTHING,
    "output": STRING,
}
SCHEMAS: dict[str, Schema] = {
    "CreateChatCompletion": request_object(FIELDS, ("messages",)),
    "ChatUsage": _USAGE,
    "ChatCompletion": shape(_COMPLETION, ("hermes",)),
    "StoredChatCompletion": shape({**_COMPLETION, "metadata": METADATA}, ("hermes",)),
    "ChatCompletionList": list_of(ref("StoredChatCompletion")),
    "ChatCompletionDeleted": shape(
        {"id": STRING, "object": const("chat.completion.deleted"), "deleted": const(True)}
    ),
    "ChatCompletionChunk": shape(
        {
            **_envelope("chat.completion.chunk"),
            "choices": array_of(_choice("delta", shape(_DELTA_FIELDS, _DELTA_FIELDS)), maxItems=1),
            "usage": nullable(ref("ChatUsage")),
            "hermes": _TROUBLE,
        },
        ("usage", "hermes"),
    ),
    "ToolProgress": shape(
        _PROGRESS,
        ("usage", "emoji", "label", "input", "output"),
        f"A tool that the server runs starts, or ends. input and output come with {DETAIL_HEADER}: full.",
    ),
    "ChatApprovalRequest": shape(
        {**_BESIDE, "approval": shape(runs.APPROVAL_REQUEST)},
        ("usage",),
        "A tool call waits for consent.",
    ),
    "ChatApprovalResponded": shape(
        {**_BESIDE, "approval": shape(runs.APPROVAL_ANSWER)}, ("usage",), "It has been decided."
    ),
}
_STREAM: dict[str, Any] = stream(
    frame(any_of(ref("ChatCompletionChunk"), ref("Error"))),
    frame(ref("ToolProgress"), event=const(events.CHAT_TOOL_PROGRESS)),
    frame(ref("ChatApprovalRequest"), event=const(events.CHAT_APPROVAL_REQUEST)),
    frame(ref("ChatApprovalResponded"), event=const(events.CHAT_APPROVAL_RESPONDED)),
    DONE_FRAME,
)
_WANTED_METADATA: Schema = {
    "type": "object",
    "propertyNames": WORD,
    "additionalProperties": WORD,
}
_DETAIL = {
    "name": DETAIL_HEADER,
    "in": "header",
    "schema": {**enum(("full", "short")), "default": "short"},
}
PATHS: Paths = {
    "/v1/chat/completions": {
        "post": generating(
            "create_chat_completion",
            "Make a chat completion",
            (
                200,
                response(
                    {**json(ref("ChatCompletion")), **_STREAM},
                    "The completion, or its chunks with `stream`. "
                    + names_of(
                        (
                            events.CHAT_TOOL_PROGRESS,
                            events.CHAT_APPROVAL_REQUEST,
                            events.CHAT_APPROVAL_RESPONDED,
                        )
                    ),
                    (*ADMITTED_HEADERS, "X-Hermes-Completed", "X-Hermes-Partial", "X-Hermes-Error"),
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
                {
                    **query(
                        "metadata",
                        _WANTED_METADATA,
                        "Only those with these pairs: `metadata[key]=value`.",
                    ),
                    "style": "deepObject",
                    "explode": True,
                },
            ],
        ),
    },
    "/v1/chat/completions/{completion_id}": {
        "get": operation(
            "get_chat_completion",
            "One of them as it is now",
            (
                200,
                response(json(ref("StoredChatCompletion")), "The completion.", (SESSION_HEADER,)),
            ),
            errors=("404",),
        ),
        "delete": operation(
            "delete_chat_completion",
            "Erase it; one that runs is cancelled first",
            (200, response(json(ref("ChatCompletionDeleted")))),
            errors=("404", "503"),
        ),
    },
}
