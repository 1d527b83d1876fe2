"""Ordinary turns: streams, history, stop sequences, structured output and usage."""

import json
from typing import Any

import jsonschema
import pytest

from tests.support.chat_client import complete, user
from tests.support.checker import check_log
from tests.support.real_models import RealModel
from tests.support.recording_proxy import RecordingProxy
from tests.support.scripted_requests import respond
from tests.support.server import Server, created_id, events, streaming, text

KEEPALIVE = b": keepalive\n\n"
STORY = "Write a long story about a fox."
SHORT: dict[str, Any] = {"temperature": 0, "max_output_tokens": 60}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "is_tall": {"type": "boolean"}},
    "required": ["name", "is_tall"],
    "additionalProperties": False,
}


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_the_text_arrives_in_pieces_that_add_up_to_the_stored_answer(hermes: Server) -> None:
    with streaming(hermes, input=STORY, **SHORT) as (_, received):
        found = [frame for frame in received if frame != KEEPALIVE]
    deltas = [event["delta"] for event in events(found) if event["type"] == "response.output_text.delta"]
    body = hermes.body(created_id(found[0]))
    assert len(deltas) > 20
    assert "".join(deltas) == text(body) != ""
    assert hermes.replay(body["id"]) == found
    check_log(hermes, body["id"])


def test_an_answer_at_temperature_0_is_the_same_again(hermes: Server) -> None:
    first, again = respond(hermes, input=STORY, **SHORT), respond(hermes, input=STORY, **SHORT)
    assert text(first) == text(again) != ""


def test_a_chain_sends_the_model_the_turns_before(hermes: Server, proxy: RecordingProxy) -> None:
    first = respond(hermes, input="My name is Zebulon.", **SHORT)
    second = respond(hermes, input="What is my name?", previous_response_id=first["id"], **SHORT)
    assert second["status"] in ("completed", "incomplete")
    sent = proxy.bodies_with("What is my name?")[-1]
    assert roles(sent)[-3:] == ["user", "assistant", "user"]
    contents = [message["content"] for message in sent["messages"][-3:]]
    assert contents == ["My name is Zebulon.", text(first), "What is my name?"]
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def test_a_chat_client_resends_the_history(hermes: Server, proxy: RecordingProxy) -> None:
    messages = [user("I like plums."), {"role": "assistant", "content": "So do I."}, user("What do I like?")]
    found = complete(hermes, messages, temperature=0, max_tokens=40)
    assert found["choices"][0]["message"]["content"]
    sent = proxy.bodies_with("I like plums.")[-1]
    assert sent["messages"][-3:] == messages


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_stop_sequence_ends_the_text_before_it(hermes: Server, is_streamed: bool) -> None:
    whole = complete(hermes, [user(STORY)], temperature=0, max_tokens=60)["choices"][0]["message"]["content"]
    stop = whole[30:34]
    with hermes.http() as client:
        asked = {"messages": [user(STORY)], "temperature": 0, "max_tokens": 60, "stop": [stop], "stream": is_streamed}
        answer = client.post("/v1/chat/completions", json=asked)
    cut, reason = streamed_text(answer.text) if is_streamed else whole_text(answer.json())
    assert cut == whole[: whole.index(stop)]
    assert reason == "stop"


def whole_text(completion: dict[str, Any]) -> tuple[str, str]:
    [choice] = completion["choices"]
    return choice["message"]["content"], choice["finish_reason"]


def streamed_text(stream: str) -> tuple[str, str]:
    found, reason = "", ""
    for line in stream.splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                found += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
    return found, reason


def test_structured_output_follows_the_schema(hermes: Server, proxy: RecordingProxy, model: RealModel) -> None:
    wanted = {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}
    body = respond(hermes, input="Describe a person.", temperature=0, max_output_tokens=200, text={"format": wanted})
    assert body["status"] == "completed", body
    jsonschema.validate(json.loads(text(body)), PERSON)
    sent = proxy.bodies_with("Describe a person.")[-1]["response_format"]
    if model.provider == "llama-cpp-python":
        assert sent == {"type": "json_object", "schema": PERSON}
    else:
        assert sent["type"] == "json_schema"


def test_usage_is_counted_by_one_server_and_estimated_for_the_other(hermes: Server, model: RealModel) -> None:
    with hermes.http() as client:
        answer = client.post("/v1/responses", json={"input": STORY, **SHORT})
    usage = answer.json()["usage"]
    assert usage["input_tokens"] > 5
    assert usage["output_tokens"] > 5
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    expected = {"llama-cpp-python": "estimated", "llamacpp": None}
    assert answer.headers.get("X-Hermes-Usage") == expected[model.provider]
