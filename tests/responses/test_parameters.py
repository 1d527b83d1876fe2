"""Every parameter is honoured, repeated in the response object, or refused by name."""

from typing import Any

import pytest

from tests.support.server import Server, script

pytestmark = pytest.mark.any_database

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "rain": {"type": "boolean"}}}

ECHOED: list[tuple[str, Any, Any]] = [
    ("temperature", 0.5, 0.5),
    ("top_p", 0.25, 0.25),
    ("text", {"verbosity": "low"}, {"format": {"type": "text"}, "verbosity": "low"}),
    ("reasoning", {"effort": "high"}, {"effort": "high", "summary": None}),
    ("tools", [FUNCTION], [{**FUNCTION, "description": None, "strict": None}]),
    ("tools", [], []),
    ("tool_choice", "none", "none"),
    ("parallel_tool_calls", False, False),
    ("max_tool_calls", 3, 3),
    ("truncation", "auto", "auto"),
    ("prompt_cache_key", "k", "k"),
    ("safety_identifier", "s", "s"),
    ("service_tier", "flex", "flex"),
    ("user", "u", "u"),
    ("top_logprobs", 0, 0),
    ("metadata", {"a": "b"}, {"a": "b"}),
    ("max_output_tokens", 100, 100),
    ("instructions", "Be kind.", "Be kind."),
]


@pytest.mark.parametrize(("name", "value", "shown"), ECHOED, ids=range(len(ECHOED)))
def test_a_parameter_is_repeated_in_the_response(server: Server, name: str, value: Any, shown: Any) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", name: value})
    assert answer.status_code == 200, answer.text
    assert answer.json()[name] == shown
    assert "x-hermes-ignored" not in answer.headers


def test_accepted_parameters_that_are_not_repeated(server: Server) -> None:
    fields = {"include": ["message.input_image.image_url"], "stream_options": {"include_obfuscation": False}}
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", **fields})
    assert answer.status_code == 200
    assert "x-hermes-ignored" not in answer.headers


def test_options_without_effect_are_named(server: Server) -> None:
    fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", **fields})
    assert answer.json()["top_logprobs"] == 2
    assert answer.headers["x-hermes-ignored"] == "top_logprobs, include[0] (message.output_text.logprobs)"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": "all"}, "tools"),
    ({"tools": [5]}, "tools[0]"),
    ({"tools": [{}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "f", "parameters": []}]}, "tools[0].parameters"),
    ({"tools": [{"type": "function", "name": "f", "strict": 1}]}, "tools[0].strict"),
    ({"tools": [FUNCTION, FUNCTION]}, "tools[0].name"),
    ({"tool_choice": "always"}, "tool_choice"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "magic"}}, "tool_choice.type"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "x", "tools": [FUNCTION]}}, "tool_choice.mode"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice.tools"),
    ({"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice"),
    ({"max_tool_calls": 0}, "max_tool_calls"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
    ({"text": {"verbosity": "loud"}}, "text.verbosity"),
    ({"reasoning": {"effort": "utmost"}}, "reasoning.effort"),
    ({"reasoning": "high"}, "reasoning"),
    ({"include": "all"}, "include"),
    ({"include": ["everything"]}, "include[0]"),
    ({"service_tier": "gold"}, "service_tier"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"stream_options": {"include_obfuscation": "no"}}, "stream_options.include_obfuscation"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"conversation": 5}, "conversation"),
    ({"conversation": {}}, "conversation.id"),
    ({"conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=range(len(REFUSED)))
def test_a_bad_parameter_is_a_400_that_names_it(server: Server, fields: dict[str, Any], param: str) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", **fields})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_structured_output_follows_the_schema(server: Server) -> None:
    text_format = {"type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True}
    with server.http() as client:
        body = client.post("/v1/responses", json={"input": "hi", "text": {"format": text_format}}).json()
    assert body["text"]["format"] == text_format
    assert body["output"][0]["content"][0]["text"] == '{"city":"sample","rain":true}'


def test_the_number_of_tool_calls_is_limited(server: Server) -> None:
    twice = script(
        {"call": "calculate", "arguments": {"expression": "1+1"}},
        {"call": "calculate", "arguments": {"expression": "2+2"}},
    )
    with server.http() as client:
        body = client.post("/v1/responses", json={"input": twice, "max_tool_calls": 1}).json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_tool_calls"}
