"""The structured parameters of a request but its tools: format, reasoning, context and the like."""

from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import (
    Field,
    an_object,
    boolean,
    choice,
    integer,
    short_text,
)
from responses_app.requests.json_schema import array_of
from responses_app.requests.structures import array, object_of, object_or, one_of_types, read_array

MAX_TOKENS = 2**31 - 1
MIN_COMPACT_TOKENS = 1000
LOGPROBS = "message.output_text.logprobs"

# -- text -------------------------------------------------------------------------------
json_format = object_of({"name": short_text(64), "schema": an_object}, ("name", "schema"))
text_format = one_of_types(
    {"text": object_of({}), "json_object": object_of({}), "json_schema": json_format}
)
verbosity = choice("low", "medium", "high")


def _with_text_defaults(given: dict[str, Any]) -> dict[str, Any]:
    return given | {
        "format": given.get("format") or {"type": "text"},
        "verbosity": given.get("verbosity") or "medium",
    }


text_options = object_of({"format": text_format, "verbosity": verbosity}).then(_with_text_defaults)

# -- reasoning --------------------------------------------------------------------------
effort = choice("none", "minimal", "low", "medium", "high", "xhigh", "max")
_summary = choice("auto", "concise", "detailed")


def _with_reasoning_keys(given: dict[str, Any]) -> dict[str, Any]:
    return given | {"effort": given.get("effort"), "summary": given.get("summary")}


reasoning = object_of({"effort": effort, "summary": _summary}).then(_with_reasoning_keys)

# -- delivery ---------------------------------------------------------------------------
include = array(
    choice(
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        LOGPROBS,
    ),
    "strings",
)
stream_options = object_of({"include_obfuscation": boolean})

# -- context ----------------------------------------------------------------------------
_reference = short_text(200).described("An id or a name.")


def _reference_of(given: str | dict[str, Any]) -> str:
    if isinstance(given, dict):
        return str(given["id"])
    return given


conversation = object_or(_reference, object_of({"id": _reference}, ("id",))).then(_reference_of)
_compaction = object_of(
    {
        "type": choice("compaction"),
        "compact_threshold": integer(MIN_COMPACT_TOKENS, MAX_TOKENS).described(
            "In tokens: where a summary takes the place of the conversation."
        ),
    },
    ("type",),
)


def _read_context_management(value: Any, name: str) -> list[dict[str, Any]]:
    """Compaction is the only strategy, and a request may ask for it once."""
    entries = read_array(value, name, "an array of objects")
    if len(entries) > 1:
        raise InvalidRequest(f"{name} may hold one entry.", param=f"{name}[1]")
    return [_compaction(entry, f"{name}[0]") for entry in entries]


context_management = Field(_read_context_management, array_of(_compaction.schema, maxItems=1))
