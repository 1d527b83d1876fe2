"""Items and the response object, as clients read them."""

from responses_app.protocol.status import IncompleteReason, Status
from responses_app.requests.items import KEPT_TYPES, ROLES
from responses_app.requests.json_schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    described,
    enum,
    loose,
    nullable,
    ref,
    shape,
    string,
    union,
)
from responses_app.schema.builders import (
    WHOLE_SECONDS,
)

ITEM_STATUSES = ("in_progress", "completed", "incomplete", "failed")
METADATA: Schema = {"type": "object", "additionalProperties": STRING}

_TOKEN: dict[str, Schema] = {"token": STRING, "bytes": array_of(INTEGER), "logprob": NUMBER}
LOGPROB = shape(
    _TOKEN | {"top_logprobs": array_of(shape(_TOKEN))},
    description="How sure the model was of a token.",
)
PARTS = union(
    "type",
    {
        "output_text": shape(
            {
                "text": STRING,
                "annotations": array_of(OPEN_OBJECT),
                "logprobs": array_of(ref("Logprob")),
            },
            ("logprobs",),
        ),
        "input_text": shape({"text": STRING}),
        "input_image": shape({"image_url": STRING, "detail": STRING}, ("detail",)),
        "input_file": shape(
            {"filename": STRING, "file_data": STRING, "file_url": STRING},
            ("filename", "file_data", "file_url"),
        ),
        "refusal": shape({"refusal": STRING}),
    },
)
SUMMARY_PART = shape({"type": const("summary_text"), "text": STRING})
REASONING_PART = shape({"type": const("reasoning_text"), "text": STRING})
MCP_ERROR = shape(
    {
        "type": const("mcp_tool_execution_error"),
        "content": array_of(shape({"type": const("text"), "text": STRING})),
    }
)


def _item(properties: dict[str, Schema], *optional: str) -> Schema:
    common = {"id": STRING, "status": enum(ITEM_STATUSES)}
    return shape(common | properties, optional)


_CALL = {"call_id": STRING, "name": STRING}
_CALL_OUTPUT = {
    "call_id": STRING,
    "output": any_of(
        STRING, array_of(ref("Part")), description="A text in JSON bodies, parts in streams."
    ),
}
KNOWN_ITEMS: dict[str, Schema] = {
    "message": _item(
        {"role": enum(ROLES), "content": array_of(ref("Part")), "phase": STRING}, "phase"
    ),
    "reasoning": _item(
        {
            "summary": array_of(loose(SUMMARY_PART)),
            "content": array_of(loose(shape({"type": STRING, "text": STRING}))),
            "encrypted_content": STRING,
        },
        "content",
        "encrypted_content",
    ),
    "function_call": _item(_CALL | {"arguments": string("JSON, as the model wrote it.")}),
    "custom_tool_call": _item(_CALL | {"input": STRING}),
    "function_call_output": _item(_CALL_OUTPUT),
    "custom_tool_call_output": _item(_CALL_OUTPUT),
    # One that a client sent is returned as it was sent.
    "compaction": loose(
        _item({"encrypted_content": string("Opaque, and for its owner alone.")}, "status")
    ),
    "mcp_call": loose(
        _item(
            {
                "server_label": STRING,
                "name": STRING,
                "arguments": STRING,
                "approval_request_id": nullable(STRING),
                "output": nullable(STRING),
                "error": nullable(any_of(MCP_ERROR, STRING, OPEN_OBJECT)),
            },
            "status",
            "approval_request_id",
            "output",
            "error",
        )
    ),
}
_KEPT = ", ".join(sorted(KEPT_TYPES))
OTHER_ITEM: Schema = {
    "type": "object",
    "description": f"Items that only other servers make are kept as they are: {_KEPT}.",
    "properties": {"id": STRING, "type": {"type": "string", "not": enum(KNOWN_ITEMS)}},
    "required": ["id", "type"],
    "additionalProperties": True,
}
USAGE = shape(
    {
        "input_tokens": INTEGER,
        "input_tokens_details": shape({"cached_tokens": INTEGER, "cache_write_tokens": INTEGER}),
        "output_tokens": INTEGER,
        "output_tokens_details": shape({"reasoning_tokens": INTEGER}),
        "total_tokens": INTEGER,
    }
)
INCOMPLETE = shape({"reason": enum(IncompleteReason), "message": STRING}, ("message",))

# A response repeats these fields of its request.
_ECHO: dict[str, Schema] = {
    "background": BOOLEAN,
    "conversation": nullable(shape({"id": STRING})),
    "frequency_penalty": NUMBER,
    "instructions": nullable(STRING),
    "max_output_tokens": nullable(INTEGER),
    "max_tool_calls": nullable(INTEGER),
    "metadata": METADATA,
    "parallel_tool_calls": BOOLEAN,
    "presence_penalty": NUMBER,
    "previous_response_id": nullable(STRING),
    "prompt": described({"type": "null"}, "Stored prompts are not supported."),
    "prompt_cache_key": nullable(STRING),
    "reasoning": OPEN_OBJECT,
    "safety_identifier": nullable(STRING),
    "service_tier": STRING,
    "store": BOOLEAN,
    "temperature": NUMBER,
    "text": OPEN_OBJECT,
    "tool_choice": any_of(STRING, OPEN_OBJECT),
    "tools": array_of(OPEN_OBJECT),
    "top_logprobs": INTEGER,
    "top_p": NUMBER,
    "truncation": STRING,
    "user": nullable(STRING),
}
_RESPONSE: dict[str, Schema] = {
    "id": string("resp_…"),
    "object": const("response"),
    "created_at": WHOLE_SECONDS,
    "status": enum(Status),
    "completed_at": nullable(WHOLE_SECONDS),
    "error": nullable(shape({"code": STRING, "message": STRING})),
    "incomplete_details": nullable(INCOMPLETE),
    "model": STRING,
    "output": array_of(ref("Item")),
    "usage": nullable(ref("Usage")),
}
RESPONSE = shape(_RESPONSE | _ECHO)

SCHEMAS: dict[str, Schema] = {
    "Part": PARTS,
    "Logprob": LOGPROB,
    "Item": {"oneOf": union("type", KNOWN_ITEMS)["oneOf"] + [OTHER_ITEM]},
    "Usage": USAGE,
    "Response": RESPONSE,
}
