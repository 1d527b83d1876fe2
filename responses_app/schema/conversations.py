"""``/v1/conversations``."""

from responses_app.api.pagination import DEFAULT_LIMIT, MAX_LIMIT
from responses_app.requests import conversations
from responses_app.requests.headers import IGNORED_HEADER
from responses_app.requests.json_schema import (
    STRING,
    Schema,
    const,
    ref,
    shape,
)
from responses_app.requests.structures import object_of
from responses_app.schema.builders import (
    WHOLE_SECONDS,
    Paths,
    paging,
)
from responses_app.schema.items import METADATA
from responses_app.schema.operations import (
    json,
    operation,
    request_body,
    response,
)

_GONE = ("404", "503")
_SHOWN = (200, response(json(ref("Conversation")), "The conversation."))
_CHANGED = (200, response(json(ref("Conversation")), "The conversation.", (IGNORED_HEADER,)))

SCHEMAS: dict[str, Schema] = {
    "Conversation": shape(
        {
            "id": STRING,
            "object": const("conversation"),
            "created_at": WHOLE_SECONDS,
            "metadata": METADATA,
            "name": STRING,
        },
        ("name",),
    ),
    "ConversationDeleted": shape(
        {"id": STRING, "object": const("conversation.deleted"), "deleted": const(True)}
    ),
    "CreateConversation": object_of(conversations.CREATE_FIELDS).schema,
    "UpdateConversation": object_of(conversations.UPDATE_FIELDS, ("metadata",)).schema,
    "AddItems": object_of(conversations.ADD_FIELDS, ("items",)).schema,
}
PATHS: Paths = {
    "/v1/conversations": {
        "post": operation(
            "create_conversation",
            "Make a conversation",
            _CHANGED,
            body=request_body(ref("CreateConversation"), is_required=False),
            errors=("503",),
        )
    },
    "/v1/conversations/{conversation_id}": {
        "get": operation("get_conversation", "A conversation", _SHOWN, errors=("404",)),
        "post": operation(
            "update_conversation",
            "Replace its metadata",
            _CHANGED,
            body=request_body(ref("UpdateConversation")),
            errors=_GONE,
        ),
        "delete": operation(
            "delete_conversation",
            "Delete it and its items; responses stay",
            (200, response(json(ref("ConversationDeleted")))),
            errors=_GONE,
        ),
    },
    "/v1/conversations/{conversation_id}/items": {
        "get": operation(
            "list_conversation_items",
            "Its items",
            (200, response(json(ref("ItemList")))),
            parameters=paging(DEFAULT_LIMIT, MAX_LIMIT),
            errors=("404",),
        ),
        "post": operation(
            "add_conversation_items",
            "Add items at its end",
            (200, response(json(ref("ItemList")), "The new items.", (IGNORED_HEADER,))),
            body=request_body(ref("AddItems")),
            errors=_GONE,
        ),
    },
    "/v1/conversations/{conversation_id}/items/{item_id}": {
        "get": operation(
            "get_conversation_item", "One item", (200, response(json(ref("Item")))), errors=("404",)
        ),
        "delete": operation("delete_conversation_item", "Take an item out", _SHOWN, errors=_GONE),
    },
}
