"""The stand-ins refuse what their originals refuse: a wrong request can't pass unnoticed."""

from typing import Any

import pytest

from tests.dialects.dialect import refusal
from tests.dialects.registry import DIALECTS
from tests.dialects.servers.gemini import SIGNATURE
from tests.support.model_stub import Asked

HEADERS = {"authorization": "Bearer k", "api-key": "k"}
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "Be short."}
TEXT = {"role": "assistant", "content": "Hello."}
RESULT = {"role": "tool", "tool_call_id": "D00000001", "content": "42"}


def called(arguments: str = "{}", call_id: str = "D00000001", **fields: Any) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
    call["extra_content"] = SIGNATURE
    return {"role": "assistant", "content": "", "tool_calls": [call], **fields}


def asked(*messages: dict[str, Any], path: str = "/v1/chat/completions", **fields: Any) -> Asked:
    return Asked(path, HEADERS, {"model": "m", "stream": True, "messages": list(messages), **fields}, 1)


def unsigned() -> dict[str, Any]:
    message = called()
    del message["tool_calls"][0]["extra_content"]
    return message


JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
BROKEN_JSON = asked(USER, called('{"a": 1,}', reasoning_content=""), RESULT)
TWO_SYSTEMS = asked(SYSTEM, USER, SYSTEM, USER)
FLAWED = [
    ("ollama", BROKEN_JSON, 400),
    ("ollama", asked(USER, {"role": "assistant", "content": None}, USER), 400),
    ("llamacpp", BROKEN_JSON, 500),
    ("llamacpp", TWO_SYSTEMS, 400),
    ("llamacpp", asked(USER, TEXT, TEXT), 400),
    ("llama-cpp-python", asked(USER, called(content=None), RESULT), 500),
    ("llama-cpp-python", asked({"role": "developer", "content": "x"}), 500),
    ("llama-cpp-python", asked(USER, response_format=JSON_SCHEMA), 500),
    ("vllm", BROKEN_JSON, 400),
    ("vllm", TWO_SYSTEMS, 400),
    ("vllm", asked(USER, tools=[]), 400),
    ("vllm", asked(USER, TEXT, continue_final_message=True), 400),
    ("lmstudio", TWO_SYSTEMS, 500),
    ("lmstudio", asked(USER, response_format={"type": "json_object"}), 400),
    ("openrouter", BROKEN_JSON, 400),
    ("openrouter", asked(USER, called(), USER), 400),
    ("deepseek", asked(USER, called(), RESULT), 400),
    ("deepseek", asked(USER, called(reasoning_content=""), USER), 400),
    ("deepseek", asked(USER, response_format=JSON_SCHEMA), 400),
    ("deepseek", asked(USER, response_format={"type": "json_object"}), 400),
    ("deepseek", asked(USER, {**TEXT, "prefix": True}), 400),
    ("gemini", asked(USER, unsigned(), RESULT), 400),
    ("gemini", asked(USER, top_k=3), 400),
    ("gemini", BROKEN_JSON, 400),
    ("mistral", asked(USER, stream_options={}), 422),
    ("mistral", asked(USER, {**TEXT, "reasoning_content": "x"}, USER), 422),
    ("mistral", asked(USER, tools=[]), 422),
    ("mistral", asked(USER, called(call_id="call_1"), RESULT), 400),
    ("mistral", asked(USER, called(), RESULT, USER), 400),
    ("mistral", asked(USER, TEXT), 400),
    ("azure", Asked("/", {}, {"messages": [USER]}, 1), 401),
    ("openai", asked(USER, {**TEXT, "reasoning_content": "x"}, USER), 400),
    ("openai", asked(USER, top_k=3), 400),
    ("openai", asked(USER, max_tokens=3), 400),
    ("openai", asked(USER, called(), USER), 400),
]
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
FLAWED_INPUTS: list[tuple[list[dict[str, Any]], int]] = [
    ([USER, CALL], 400),
    ([USER, OUTPUT], 400),
    ([USER, CALL | {"id": "item_1"}, OUTPUT], 400),
    ([USER, SEALED], 400),
    ([USER, {"type": "reasoning", "summary": []}, CALL, OUTPUT], 404),
    ([USER, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], 400),
]


@pytest.mark.parametrize(("name", "request_", "status"), FLAWED)
def test_a_flawed_request_is_refused(name: str, request_: Asked, status: int) -> None:
    dialect = DIALECTS[name]
    refused = refusal(dialect, request_)
    assert refused is not None
    assert dialect.error(refused).status == status


@pytest.mark.parametrize(("items", "status"), FLAWED_INPUTS)
def test_flawed_items_are_refused(items: list[dict[str, Any]], status: int) -> None:
    refused = refusal(DIALECTS["openai-responses"], Asked("/", HEADERS, {"model": "m", "input": items}, 1))
    assert refused is not None
    assert refused.status == status


@pytest.mark.parametrize("name", [name for name, dialect in DIALECTS.items() if dialect.form is not None])
def test_a_proper_request_is_not_refused(name: str) -> None:
    call = called()
    if name == "deepseek":
        call["reasoning_content"] = "Hm."
    if name != "gemini":
        del call["tool_calls"][0]["extra_content"]
    assert refusal(DIALECTS[name], asked(SYSTEM, USER, call, RESULT, TEXT, USER)) is None
