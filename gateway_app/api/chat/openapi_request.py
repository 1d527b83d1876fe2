"""The body of ``POST /v1/chat/completions``, described.

Most fields are read as they are. Tools, formats and messages have a form of their own in Chat
Completions: they are described here, and translated before they are read.
"""

from gateway_app.api.chat.messages import TEXT_FIELDS
from gateway_app.api.chat.requests import OWN_FIELDS
from gateway_app.api.chat.translation import SAME
from gateway_app.providers.openai.extra_fields import CHAT_ONLY_FIELDS
from responses_app.requests import create, options, tool_choice, tools
from responses_app.requests.chat_content import CHAT_IMAGE
from responses_app.requests.content import content_schema, tool_output_schema
from responses_app.requests.fields import boolean, schemas_of
from responses_app.requests.input_items import MAX_ITEMS
from responses_app.requests.items import OTHER_ROLES, item_id
from responses_app.requests.json_schema import (
    ANYTHING,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    described,
    enum,
    loose,
    ref,
    request_object,
    shape,
)


# -- tools and formats: with or without the level that Chat Completions have around them ----
def _nested(kind: str, inner: Schema) -> Schema:
    return loose(shape({"type": const(kind), kind: inner}))


_CUSTOM_FIELDS = schemas_of(tools.CUSTOM_FIELDS)
_CUSTOM_FIELDS["format"] = any_of(
    _CUSTOM_FIELDS["format"], _nested("grammar", tools.grammar.schema)
)
_TOOL = any_of(
    _nested("function", tools.function.schema),
    _nested("custom", request_object(_CUSTOM_FIELDS, ("name",))),
    tools.tool.schema,
)
_CHOSEN = any_of(
    _nested("function", tool_choice.chosen_name.schema),
    _nested("custom", tool_choice.chosen_name.schema),
)
_ALLOWED = {
    "mode": tool_choice.allowed_mode.schema,
    "tools": array_of(any_of(tool_choice.allowed_tool.schema, _CHOSEN), minItems=1),
}
_TOOL_CHOICE = any_of(
    tool_choice.tool_choice.schema,
    _CHOSEN,
    _nested("allowed_tools", loose(shape(_ALLOWED))),
)
_FORMAT = any_of(options.text_format.schema, _nested("json_schema", options.json_format.schema))


# -- messages ---------------------------------------------------------------------------
def _call(written: str) -> Schema:
    """``written`` names what the model wrote: arguments or input."""
    return loose(shape({"name": item_id.schema, written: STRING}))


def _message(role: Schema, required: tuple[str, ...], fields: dict[str, Schema]) -> Schema:
    texts = dict.fromkeys(TEXT_FIELDS, STRING)
    return request_object(texts | {"role": role} | fields, ("role", *required))


_FUNCTION_CALL = request_object(
    {"id": item_id.schema, "type": const("function"), "function": _call("arguments")},
    ("id", "function"),
)
_CUSTOM_CALL = request_object(
    {"id": item_id.schema, "type": const("custom"), "custom": _call("input")},
    ("id", "type", "custom"),
)
_CALLS = array_of(any_of(_FUNCTION_CALL, _CUSTOM_CALL))
_ASSISTANT = const("assistant")
_ANY_CONTENT = any_of(STRING, array_of(any_of(STRING, ref("OutputPart"), CHAT_IMAGE)))
_MESSAGE = any_of(
    _message(enum(OTHER_ROLES), ("content",), {"content": content_schema("ChatPart")}),
    _message(
        const("tool"),
        ("content", "tool_call_id"),
        {"content": tool_output_schema(CHAT_IMAGE), "tool_call_id": item_id.schema},
    ),
    # A message of the model has a text, a refusal or calls.
    _message(
        _ASSISTANT,
        ("content",),
        {"content": content_schema("OutputPart", CHAT_IMAGE), "tool_calls": _CALLS},
    ),
    _message(_ASSISTANT, ("refusal",), {"content": _ANY_CONTENT, "tool_calls": _CALLS}),
    _message(
        _ASSISTANT,
        ("tool_calls",),
        {"content": _ANY_CONTENT, "tool_calls": _CALLS | {"minItems": 1}},
    ),
)

# -- the body ---------------------------------------------------------------------------
_STORE = boolean.described("true: kept as a completion; absent: in its session; false: nowhere.")
_MAX_TOKENS = create.FIELDS["max_output_tokens"]
_RENAMED = {
    "max_completion_tokens": _MAX_TOKENS,
    "max_tokens": _MAX_TOKENS,
    "reasoning_effort": options.effort,
    "verbosity": options.verbosity,
}
_SAME = {name: create.FIELDS[name] for name in SAME}
FIELDS: dict[str, Schema] = dict.fromkeys(
    CHAT_ONLY_FIELDS, described(ANYTHING, "Passed on as it is.")
)
FIELDS |= schemas_of(_SAME | _RENAMED | OWN_FIELDS | {"store": _STORE})
FIELDS |= {
    "messages": array_of(_MESSAGE, minItems=1, maxItems=MAX_ITEMS),
    "response_format": _FORMAT,
    "tools": array_of(_TOOL, maxItems=tools.MAX_TOOLS),
    "tool_choice": _TOOL_CHOICE,
}
