"""Bad requests and failed answers over Chat Completions."""

from typing import Any

import openai
import pytest

from tests.support.chat_client import (
    PATH,
    WEATHER,
    StreamedCompletion,
    post,
    response_id,
    scripted,
    stream_completion,
    streamed,
    user,
)
from tests.support.server import Server

pytestmark = pytest.mark.any_database

HI = [user("hi")]
ASSISTANT: Any = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]}


def assistant(**function: Any) -> dict[str, Any]:
    return {**ASSISTANT, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "function", "content": "hi"}]}, "messages[0].role"),
    ({"messages": [*HI, {"role": "user"}]}, "messages[1].content"),
    ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0].text"),
    ({"messages": [user([{"type": "input_audio"}])]}, "messages[0].content[0].type"),
    (
        {"messages": [user([{"type": "image_url", "image_url": {"url": "ftp://x"}}])]},
        "messages[0].content[0].image_url",
    ),
    ({"messages": [{"role": "assistant"}]}, "messages[0].content"),
    ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
    ({"messages": [*HI, ASSISTANT]}, "messages[1].tool_calls[0].function"),
    ({"messages": [*HI, assistant(name="f")]}, "messages[1].tool_calls[0].function.arguments"),
    ({"messages": [*HI, assistant(name=3, arguments="{}")]}, "messages[1].tool_calls[0].function.name"),
    ({"messages": [*HI, assistant(name="f", arguments="{}"), *HI]}, "messages[1].tool_calls[0].id"),
    ({"messages": [*HI, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
    ({"messages": [*HI, {"role": "tool", "tool_call_id": "c9", "content": "x"}]}, "messages[1].tool_call_id"),
    ({"messages": [*HI, {"role": "tool", "tool_call_id": "c9"}]}, "messages[1].content"),
    ({"n": 2}, "n"),
    ({"n": 0}, "n"),
    ({"stop": 3}, "stop"),
    ({"stop": ["a", ""]}, "stop[1]"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"temperature": 3}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_completion_tokens": "x"}, "max_completion_tokens"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": []}, "stream_options"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"response_format": "json"}, "response_format"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.name"),
    ({"reasoning_effort": "much"}, "reasoning_effort"),
    ({"verbosity": "loud"}, "verbosity"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "custom", "custom": {"name": "a b"}}]}, "tools[0].custom.name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "strict": 1}}]}, "tools[0].function.strict"),
    ({"tool_choice": "maybe"}, "tool_choice"),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
    ({"frequency_penalty": 3}, "frequency_penalty"),
    ({"seed": "x"}, "seed"),
    ({"functions": []}, "functions"),
    ({"modalities": ["audio"]}, "modalities"),
]


@pytest.mark.parametrize(("fields", "param"), BAD, ids=range(len(BAD)))
def test_a_bad_field_is_a_400_that_names_it(server: Server, fields: dict[str, Any], param: str) -> None:
    with server.http() as client:
        answer = client.post(PATH, json={"messages": HI, **fields})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert error["message"]
    assert "input[" not in error["message"]


def test_an_unknown_model_and_a_wrong_key(server: Server) -> None:
    assert post(server, HI, model="unknown").json()["error"]["code"] == "model_not_found"
    assert post(server, HI, key="wrong").status_code == 401
    assert post(server, HI, model=None, store=None).status_code == 200


def test_a_failed_completion_is_an_http_error_that_may_be_tried_again(server: Server) -> None:
    for code, status, kind in (
        ("server_error", 500, "server_error"),
        ("rate_limit_exceeded", 429, "rate_limit_error"),
        ("invalid_prompt", 400, "invalid_request_error"),
    ):
        answer = post(server, scripted({"say": "so "}, {"fail": "it broke", "code": code}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.json()["error"]["type"] == kind
        assert "x-should-retry" not in answer.headers
        assert answer.headers["x-hermes-session-id"]


@pytest.mark.parametrize("name", ["effect", "_hidden"])
def test_once_a_tool_has_run_no_client_should_retry(server: Server, name: str) -> None:
    """The tool makes the model fail: its output is the next script."""
    failing = '{"script": [{"fail": "after the tool"}]}'
    answer = post(server, scripted({"call": name, "arguments": {"text": failing}}))
    assert (answer.status_code, answer.headers["x-should-retry"]) == (500, "false")


def test_a_failed_stream_ends_with_an_error_and_done(server: Server) -> None:
    asked: Any = scripted({"say": "so far "}, {"fail": "it broke"})
    completion = stream_completion(server, asked, stream_options={"include_usage": True})
    assert completion.joined("content") == "so far "
    assert completion.error == {"message": "it broke", "type": "server_error", "param": None, "code": "server_error"}
    assert completion.reasons == []
    with pytest.raises(openai.APIError, match="it broke"):
        for _ in server.openai().chat.completions.create(model="hermes-agent", messages=asked, stream=True):
            pass


def test_a_completion_that_is_cancelled_from_elsewhere_stops(server: Server) -> None:
    with streamed(server, scripted({"say": "chat-half "}, {"gate": "never"})) as (answer, received):
        completion = StreamedCompletion(answer.headers)
        completion.note(next(received))
        completion.note(next(received))
        with server.http() as client:
            client.post(f"/v1/responses/{response_id(completion.chunks[0]['id'])}/cancel")
        for frame in received:
            completion.note(frame)
    assert (completion.joined("content"), completion.reasons, completion.is_done) == ("chat-half ", ["stop"], True)
    assert completion.chunks[-1]["hermes"]["reason"] == "cancelled"
