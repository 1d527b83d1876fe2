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
from responses_app.requests.json_schema import (
    ANYTHING,
    BOOLEAN,
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
    string,
    whole_number,
)
from responses_app.requests.options import EFFORTS, MAX_TOKENS, MAX_TOOLS, VERBOSITIES
from responses_app.schema import requests
from responses_app.schema.inputs import (
    CHAT_IMAGE,
    ID,
    OTHER_ROLES,
    content,
    output,
)
from responses_app.schema.requests import SHARED, number
from responses_app.schema.tools import CHAT_CHOICE, CHAT_FORMAT, CHAT_TOOL

_STOP = string("The answer ends there.", minLength=1, maxLength=MAX_STOP_CHARS)
_CALLS = array_of(
    any_of(
        request_object(
            {
                "id": ID,
                "type": const("function"),
                "function": loose(shape({"name": ID, "arguments": STRING})),
            },
            ("id", "function"),
        ),
        request_object(
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
_PARTS = array_of(any_of(STRING, ref("OutputPart"), CHAT_IMAGE))
_ANY_CONTENT = any_of(STRING, _PARTS)
_MESSAGE = any_of(
    request_object(
        {**_TEXTS, "role": enum(OTHER_ROLES), "content": content("ChatPart")},
        ("role", "content"),
    ),
    request_object(
        {**_TEXTS, "role": const("tool"), "content": output(CHAT_IMAGE), "tool_call_id": ID},
        ("role", "content", "tool_call_id"),
    ),
    # The model has written something: a text, a refusal or a call.
    request_object(
        {**_BY_MODEL, "content": content("OutputPart", CHAT_IMAGE)},
        ("role", "content"),
    ),
    request_object({**_BY_MODEL, "content": _ANY_CONTENT}, ("role", "refusal")),
    request_object(
        {**_BY_MODEL, "content": _ANY_CONTENT, "tool_calls": _MADE_CALLS},
        ("role", "tool_calls"),
    ),
)
FIELDS: dict[str, Schema] = {
    **SHARED,
    "store": described(
        BOOLEAN, "true: kept as a completion; absent: in its session; false: nowhere."
    ),
    "messages": array_of(_MESSAGE, minItems=1, maxItems=MAX_ITEMS),
    "max_completion_tokens": whole_number(1, MAX_TOKENS),
    "max_tokens": whole_number(1, MAX_TOKENS),
    "stop": any_of(_STOP, array_of(_STOP, maxItems=MAX_STOPS)),
    "response_format": CHAT_FORMAT,
    "reasoning_effort": enum(EFFORTS),
    "verbosity": enum(VERBOSITIES),
    "tools": array_of(CHAT_TOOL, maxItems=MAX_TOOLS),
    "tool_choice": CHAT_CHOICE,
    "stream_options": request_object({"include_usage": BOOLEAN, "include_obfuscation": BOOLEAN}),
    "seed": whole_number(*SEEDS),
    "logit_bias": {"type": "object", "additionalProperties": number(-MAX_BIAS, MAX_BIAS)},
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "prediction": described(ANYTHING, "Passed on as it is."),
    "n": const(1),
    "logprobs": BOOLEAN,
    "top_logprobs": whole_number(0, 20),
    **dict.fromkeys(UNSUPPORTED, requests.UNSUPPORTED),
    "modalities": const(["text"]),
}
