"""The body that makes a response; other doors take most of its fields as well."""

from responses_app.requests.compact import FIELDS
from responses_app.requests.fields import (
    METADATA_KEY_CHARS,
    METADATA_PAIRS,
    METADATA_VALUE_CHARS,
)
from responses_app.requests.items import MAX_ID_CHARS, MAX_ITEMS
from responses_app.requests.json_schema import (
    BOOLEAN,
    NULL,
    STRING,
    Schema,
    any_of,
    array_of,
    described,
    enum,
    loose,
    present,
    ref,
    request_object,
    shape,
    string,
    whole_number,
)
from responses_app.requests.model_name import MAX_MODEL_CHARS
from responses_app.requests.options import (
    EFFORTS,
    INCLUDES,
    MAX_TOKENS,
    MAX_TOOLS,
    MIN_COMPACT_TOKENS,
    SUMMARIES,
    VERBOSITIES,
)
from responses_app.schema.tools import FORMAT, TOOL, TOOL_CHOICE

TIERS = ("auto", "default", "flex", "priority", "scale")


def short(description: str, high: int = MAX_ID_CHARS) -> Schema:
    return string(description, minLength=1, maxLength=high)


def number(low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


INPUT = any_of(
    STRING,
    array_of(ref("InputItem"), minItems=1, maxItems=MAX_ITEMS),
    description="A text of the user, or items.",
)
GIVEN_METADATA: Schema = {
    "type": "object",
    "maxProperties": METADATA_PAIRS,
    "propertyNames": {"maxLength": METADATA_KEY_CHARS},
    "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_CHARS},
}
UNSUPPORTED = described(NULL, "Not supported.")

COMPACTION = request_object(
    {
        "type": enum(("compaction",)),
        "compact_threshold": described(
            whole_number(MIN_COMPACT_TOKENS, MAX_TOKENS),
            "In tokens: where a summary takes the place of the conversation.",
        ),
    },
    ("type",),
)

_REFERENCE = short("An id or a name.", 200)
# Fields that every door calls the same.
SHARED: dict[str, Schema] = {
    "metadata": GIVEN_METADATA,
    "model": short("One of GET /v1/models; absent, the default agent.", MAX_MODEL_CHARS),
    "parallel_tool_calls": BOOLEAN,
    "prompt_cache_key": short("Passed on to the model."),
    "safety_identifier": short("Passed on to the model."),
    "service_tier": enum(TIERS),
    "store": described(BOOLEAN, "false keeps no content and ends with its client."),
    "stream": described(BOOLEAN, "Events instead of one body."),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "user": short("Passed on to the model."),
}
RESPONSE_FIELDS: dict[str, Schema] = {
    **SHARED,
    "background": described(BOOLEAN, "Answers at once; needs store."),
    "context_management": array_of(COMPACTION, maxItems=1),
    "conversation": any_of(_REFERENCE, loose(shape({"id": _REFERENCE}))),
    "include": array_of(enum(INCLUDES)),
    "input": INPUT,
    "instructions": string("Inherited along a chain until another text replaces them."),
    "max_output_tokens": whole_number(1, MAX_TOKENS),
    "max_tool_calls": whole_number(1, MAX_TOKENS),
    "previous_response_id": short("Goes on from that response."),
    "prompt": UNSUPPORTED,
    "reasoning": request_object({"effort": enum(EFFORTS), "summary": enum(SUMMARIES)}),
    "stream_options": request_object({"include_obfuscation": BOOLEAN}),
    "text": request_object({"format": FORMAT, "verbosity": enum(VERBOSITIES)}),
    "tool_choice": TOOL_CHOICE,
    "tools": array_of(TOOL, maxItems=MAX_TOOLS),
    "top_logprobs": whole_number(0, 20),
    "truncation": enum(("auto", "disabled")),
}
COMPACT_FIELDS: dict[str, Schema] = {
    **{name: RESPONSE_FIELDS[name] for name in FIELDS},
    "model": any_of(
        RESPONSE_FIELDS["model"], {"type": "null"}, description="null is the default agent."
    ),
    "input": INPUT,
}
DECISION_FIELDS: dict[str, Schema] = {
    "choice": enum(("once", "session", "always", "deny", "approve", "approved", "allow")),
    "request_id": short("The call_id of one of several calls.", 200),
    "all": described(BOOLEAN, "Decides about all that wait."),
    "resolve_all": described(BOOLEAN, "The same."),
}
SCHEMAS: dict[str, Schema] = {
    "CreateResponse": request_object(RESPONSE_FIELDS, ("input",)),
    "CountTokens": request_object(RESPONSE_FIELDS),
    "CompactConversation": {
        **request_object(COMPACT_FIELDS, ("model",)),
        "anyOf": [present("input"), present("previous_response_id")],
    },
    "Decision": request_object(DECISION_FIELDS, ("choice",)),
}
