"""Stored chat completions, described."""

from gateway_app.api.chat.messages import ROLES
from responses_app.requests.conversations import UPDATE_FIELDS
from responses_app.requests.headers import IGNORED_HEADER
from responses_app.requests.json_schema import (
    NULL,
    STRING,
    Schema,
    array_of,
    const,
    enum,
    nullable,
    ref,
    shape,
    union,
)
from responses_app.requests.structures import object_of
from responses_app.schema.builders import Paths, list_of, paging
from responses_app.schema.operations import json, operation, request_body, response
from responses_app.schema.responses import ENDED_HEADERS

_PART = union(
    "type",
    {
        "text": shape({"text": STRING}),
        "image_url": shape({"image_url": shape({"url": STRING, "detail": STRING}, ("detail",))}),
    },
)


def schemas(call: Schema) -> dict[str, Schema]:
    """``call`` describes a call of the client's tools."""
    message = shape(
        {
            "id": STRING,
            "role": enum(ROLES),
            "content": nullable(STRING),
            "content_parts": nullable(array_of(_PART)),
            "name": NULL,
            "refusal": STRING,
            "tool_calls": array_of(call),
            "tool_call_id": STRING,
        },
        ("refusal", "tool_calls", "tool_call_id"),
    )
    return {
        "UpdateChatCompletion": object_of(UPDATE_FIELDS, ("metadata",)).schema,
        "StoredMessageList": list_of(message),
        "ChatCompletionDeleted": shape(
            {"id": STRING, "object": const("chat.completion.deleted"), "deleted": const(True)}
        ),
    }


PATHS: Paths = {
    "/v1/chat/completions/{completion_id}": {
        "get": operation(
            "get_chat_completion",
            "One of them as it is now",
            (
                200,
                response(json(ref("StoredChatCompletion")), "The completion.", ENDED_HEADERS),
            ),
            errors=("404",),
        ),
        "post": operation(
            "update_chat_completion",
            "Replace its metadata",
            (
                200,
                response(
                    json(ref("StoredChatCompletion")),
                    "It, changed.",
                    (*ENDED_HEADERS, IGNORED_HEADER),
                ),
            ),
            body=request_body(ref("UpdateChatCompletion")),
            errors=("404", "503"),
        ),
        "delete": operation(
            "delete_chat_completion",
            "Erase it; one that runs is cancelled first",
            (200, response(json(ref("ChatCompletionDeleted")))),
            errors=("404", "503"),
        ),
    },
    "/v1/chat/completions/{completion_id}/messages": {
        "get": operation(
            "list_chat_completion_messages",
            "The messages of its request",
            (200, response(json(ref("StoredMessageList")))),
            parameters=paging(order="asc"),
            errors=("404",),
        ),
    },
}
