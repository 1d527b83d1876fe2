"""OpenAI's Responses API. Read in openai-openapi; issues of openai-python and codex as named below."""

import json
from collections.abc import Iterator
from typing import Any

from tests.dialects.dialect import Body, Dialect, Refused, Rule, error_object
from tests.dialects.rules import header, known_fields
from tests.dialects.servers.openai import unknown_parameter
from tests.support.model_stub import Asked, Cut

FIELDS = """
    model input instructions stream stream_options store include tools tool_choice parallel_tool_calls text
    temperature top_p max_output_tokens max_tool_calls reasoning user service_tier metadata prompt_cache_key
    safety_identifier truncation top_logprobs background previous_response_id conversation prompt
    prompt_cache_retention
"""
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}


def _items(asked: Asked) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(asked.body["input"])


def _calls_have_outputs() -> Rule:
    def check(asked: Asked) -> Refused | None:
        kinds = [(item.get("type"), item.get("call_id")) for _, item in _items(asked)]
        for kind, call_id in kinds:
            if kind == "function_call" and ("function_call_output", call_id) not in kinds:
                return Refused(f"No tool output found for function call {call_id}.", 400, {"param": "input"})
            if kind == "function_call_output" and ("function_call", call_id) not in kinds:
                text = f"No tool call found for function call output with call_id {call_id}."
                return Refused(text, 400, {"param": "input"})
        return None

    return check


def _ids_are_its_own() -> Rule:
    def check(asked: Asked) -> Refused | None:
        for index, item in _items(asked):
            prefix = PREFIXES.get(item.get("type", "message"))
            if prefix and "id" in item and not item["id"].startswith(prefix):
                text = f"Invalid 'input[{index}].id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
                return Refused(text, 400, {"param": f"input[{index}].id", "code": "invalid_value"})
        return None

    return check


def _reasoning_is_sealed_and_followed() -> Rule:
    """Items of unstored responses are found only by what they carry; reasoning belongs to the next item."""

    def check(asked: Asked) -> Refused | None:
        for index, item in _items(asked):
            if item.get("type") != "reasoning":
                continue
            if not item.get("encrypted_content"):
                return Refused("Items are not persisted when `store` is set to false.", 404, {"param": "input"})
            if "summary" not in item:
                return Refused(f"Missing required parameter: 'input[{index}].summary'.", 400, {"param": "input"})
            if index + 1 == len(asked.body["input"]):
                text = "Item of type 'reasoning' was provided without its required following item."
                return Refused(text, 400, {"param": "input"})
        return None

    return check


def _texts_have_the_type_of_their_role() -> Rule:
    def check(asked: Asked) -> Refused | None:
        for index, item in _items(asked):
            content = item.get("content")
            if item.get("type", "message") != "message" or isinstance(content, str):
                continue
            wanted = "output_text" if item["role"] == "assistant" else "input_text"
            for part in content or ():
                if part["type"] not in (wanted, "input_image", "input_file", "refusal"):
                    text = f"Invalid value: '{part['type']}'. Supported values are: '{wanted}'."
                    return Refused(text, 400, {"param": f"input[{index}].content[0]", "code": "invalid_value"})
        return None

    return check


def _too_long(tokens: int, window: int) -> Refused:
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return Refused(text, 400, {"param": "input", "code": "context_length_exceeded"})


def _has_format(body: Body, schema: Body) -> bool:
    wanted = (body.get("text") or {}).get("format") or {}
    return wanted.get("type") == "json_schema" and json.dumps(wanted["schema"]) == json.dumps(schema)


OPENAI_RESPONSES = Dialect(
    name="openai-responses",
    provider="openai",
    api_mode="codex_responses",
    call_id=lambda number: f"call_{number:024d}",
    error=error_object,
    rules=(
        header("authorization", Refused("Incorrect API key provided.", 401, {"code": "invalid_api_key"})),
        known_fields(FIELDS, unknown_parameter),
        _calls_have_outputs(),
        _ids_are_its_own(),
        _reasoning_is_sealed_and_followed(),
        _texts_have_the_type_of_their_role(),
    ),
    overflow=_too_long,
    broken_off=(Cut(),),
    has_format=_has_format,
    limit_fields=("max_output_tokens",),
    must_return="sealed-",  # the encrypted reasoning
)
