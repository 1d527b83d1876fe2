"""Items, messages and parts, as clients send them."""

from typing import Any

from responses_app.requests.content import DETAILS, IMAGE_URL, TEXT_TYPES
from responses_app.requests.items import (
    KEPT_TYPES,
    MAX_ID_CHARS,
    MAX_ITEMS,
    REASONING_TYPES,
    ROLES,
    SUMMARY_TYPES,
)
from responses_app.requests.json_schema import (
    NULL,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    enum,
    loose,
    nullable,
    ref,
    request_object,
    shape,
    string,
    union,
)

ID: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS}
IMAGE = string("An http(s) address with a host, or a data:image/ URL.", pattern=f"^({IMAGE_URL})$")
DETAIL = nullable(enum(DETAILS))
OTHER_ROLES = tuple(role for role in ROLES if role != "assistant")

# -- parts ------------------------------------------------------------------------------
_PARTS: dict[str, Schema] = {
    **{kind: loose(shape({"text": STRING})) for kind in TEXT_TYPES},
    "input_image": loose(shape({"image_url": IMAGE, "detail": DETAIL}, ("detail",))),
}
# Images in the form of chat completions.
CHAT_IMAGE = loose(
    shape(
        {
            "type": const("image_url"),
            "image_url": any_of(IMAGE, loose(shape({"url": IMAGE, "detail": DETAIL}, ("detail",)))),
        }
    )
)
REFUSAL = {"refusal": loose(shape({"refusal": STRING}))}


def content(part: str, *more: Schema) -> Schema:
    return any_of(STRING, array_of(any_of(STRING, ref(part), *more), minItems=1))


def output(*more: Schema) -> Schema:
    return any_of(STRING, array_of(any_of(STRING, ref("InputPart"), *more)))


# -- items ------------------------------------------------------------------------------
def _sent(kind: str, properties: dict[str, Any], *optional: str) -> Schema:
    return loose(shape({"type": const(kind), **properties}, optional))


def message(part: str, roles: tuple[str, ...], *more: Schema) -> Schema:
    """Its type may be left out."""
    properties = {
        "type": nullable(const("message")),
        "role": enum(roles),
        "content": content(part, *more),
        "phase": nullable(STRING),
    }
    return loose(shape(properties, ("type", "phase")))


def _texts(kinds: tuple[str, ...]) -> Schema:
    return nullable(array_of(loose(shape({"type": enum(kinds), "text": STRING}))))


_CALL = {"call_id": ID, "name": ID}
_MCP_CALL = {
    "server_label": STRING,
    "name": STRING,
    "arguments": STRING,
    "output": nullable(STRING),
    "error": nullable(any_of(STRING, OPEN_OBJECT)),
}
_REASONING = {
    "summary": _texts(SUMMARY_TYPES),
    "content": _texts(REASONING_TYPES),
    "encrypted_content": nullable(STRING),
}
# Everything but references: only a response can have something of an earlier one in its input.
NEW_ITEMS: list[Schema] = [
    message("InputPart", OTHER_ROLES),
    message("OutputPart", ("assistant",)),
    _sent("function_call", {**_CALL, "arguments": STRING}),
    _sent("custom_tool_call", {**_CALL, "input": STRING}),
    _sent("function_call_output", {"call_id": ID, "output": output()}),
    _sent("custom_tool_call_output", {"call_id": ID, "output": output()}),
    _sent("mcp_call", _MCP_CALL, "output", "error"),
    _sent("reasoning", _REASONING, *_REASONING),
    _sent("compaction", {"encrypted_content": string("As this server made it for you.")}),
    loose(shape({"type": enum(sorted(KEPT_TYPES - {"mcp_call"}))})),
]
BARE_REFERENCE: Schema = {
    **shape({"id": ID, "type": NULL}, ("type",)),
    "additionalProperties": False,
}
REFERENCES = [_sent("item_reference", {"id": ID}), BARE_REFERENCE]

# -- runs and sessions ------------------------------------------------------------------
# Without a role it is the user's.
_NO_ROLE = {"type": const("message"), "role": NULL, "content": content("ChatPart")}
CHAT_MESSAGES = [
    message("ChatPart", OTHER_ROLES),
    message("OutputPart", ("assistant",), CHAT_IMAGE),
]
HISTORY = array_of(
    any_of(ref("InputItem"), *CHAT_MESSAGES),
    maxItems=MAX_ITEMS,
)
_LOOSE_ITEMS = [ref("InputItem"), *CHAT_MESSAGES, request_object(_NO_ROLE, ("content",))]
LOOSE_INPUT = any_of(
    STRING,
    array_of(any_of(STRING, *_LOOSE_ITEMS), minItems=1, maxItems=MAX_ITEMS),
    description="A text, items, or texts and messages without a role.",
)

SESSION_INPUT = any_of(
    *LOOSE_INPUT["anyOf"],
    array_of(ref("ChatPart"), minItems=1),
    description="A text, the parts of one message, or items.",
)

SCHEMAS: dict[str, Schema] = {
    "InputPart": union("type", _PARTS),
    "OutputPart": union("type", {**_PARTS, **REFUSAL}),
    "ChatPart": any_of(ref("InputPart"), CHAT_IMAGE),
    "NewItem": any_of(
        *NEW_ITEMS, description="Any output of a response can be sent back as it is."
    ),
    "InputItem": any_of(ref("NewItem"), *REFERENCES),
}
