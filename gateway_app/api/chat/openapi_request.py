"""The body of ``POST /v1/chat/completions``, described."""

from gateway_app.api.chat.messages import TEXT_FIELDS
from gateway_app.api.chat.requests import (
    MAX_BIAS,
    MAX_STOP_CHARS,
    MAX_STOPS,
    SEEDS,
    UNSUPPORTED,
)
from responses_app.requests.items import MAX_ITEMS
from responses_app.requests.options import EFFORTS, MAX_TOKENS, MAX_TOOLS, VERBOSITIES
from responses_app.schema import requests
from responses_app.schema.builders import (
    ANYTHING,
    BOOLEAN,
    STRING,
    Schema,
    any_of,
    array,
    const,
    enum,
    fields,
    loose,
    ref,
    shape,
    text,
    told,
    whole,
)
from responses_app.schema.inputs import (
    CHAT_IMAGE,
    ID,
    OTHER_ROLES,
    content,
    output,
)
from responses_app.schema.requests import SHARED, number
from responses_app.schema.tools import CHAT_CHOICE, CHAT_FORMAT, CHAT_TOOL

_STOP = text("The answer ends there.", minLength=1, maxLength=MAX_STOP_CHARS)
_CALLS = array(
    any_of(
        fields(
            {
                "id": ID,
                "type": const("function"),
                "function": loose(shape({"name": ID, "arguments": STRING})),
            },
            ("id", "function"),
        ),
        fields(
            {
                "id": ID,
                "type": const("custom"),
                "custom": loose(shape({"name": ID, "input": STRING})),
            },
            ("id", "type", "custom"),
        ),
    )
)
_TEXTS = dict.fromkeys(TEXT_FIELDS, STRING)
_BY_MODEL = {**_TEXTS, "role": const("assistant"), "tool_calls": _CALLS}
_MADE_CALLS = {**_CALLS, "minItems": 1}
_PARTS = array(any_of(STRING, ref("OutputPart"), CHAT_IMAGE))
_ANY_CONTENT = any_of(STRING, _PARTS)
_MESSAGE = any_of(
    fields(
        {**_TEXTS, "role": enum(OTHER_ROLES), "content": content("ChatPart")},
        ("role", "content"),
    ),
    fields(
        {**_TEXTS, "role": const("tool"), "content": output(CHAT_IMAGE), "tool_call_id": ID},
        ("role", "content", "tool_call_id"),
    ),
    # The model has written something: a text, a refusal or a call.
    fields(
        {**_BY_MODEL, "content": content("OutputPart", CHAT_IMAGE)},
        ("role", "content"),
    ),
    fields({**_BY_MODEL, "content": _ANY_CONTENT}, ("role", "refusal")),
    fields(
        {**_BY_MODEL, "content": _ANY_CONTENT, "tool_calls": _MADE_CALLS},
        ("role", "tool_calls"),
    ),
)
FIELDS: dict[str, Schema] = {
    **SHARED,
    "store": told(BOOLEAN, "true: kept as a completion; absent: in its session; false: nowhere."),
    "messages": array(_MESSAGE, minItems=1, maxItems=MAX_ITEMS),
    "max_completion_tokens": whole(1, MAX_TOKENS),
    "max_tokens": whole(1, MAX_TOKENS),
    "stop": any_of(_STOP, array(_STOP, maxItems=MAX_STOPS)),
    "response_format": CHAT_FORMAT,
    "reasoning_effort": enum(EFFORTS),
    "verbosity": enum(VERBOSITIES),
    "tools": array(CHAT_TOOL, maxItems=MAX_TOOLS),
    "tool_choice": CHAT_CHOICE,
    "stream_options": fields({"include_usage": BOOLEAN, "include_obfuscation": BOOLEAN}),
    "seed": whole(*SEEDS),
    "logit_bias": {"type": "object", "additionalProperties": number(-MAX_BIAS, MAX_BIAS)},
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "prediction": told(ANYTHING, "Passed on as it is."),
    "n": const(1),
    "logprobs": BOOLEAN,
    "top_logprobs": whole(0, 20),
    **dict.fromkeys(UNSUPPORTED, requests.UNSUPPORTED),
    "modalities": const(["text"]),
}
