"""A tool that the request names is called, whether the server runs it or the client."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.real_models import Options, RealModel, running_model
from tests.support.recording_proxy import RecordingProxy
from tests.support.scripted_requests import respond
from tests.support.server import Server

CITIES = ["Paris", "Rome", "Oslo"]
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": CITIES}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def written_call(name: str, **arguments: Any) -> dict[str, Any]:
    call = json.dumps({"name": name, "arguments": arguments})
    return {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"}


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def examples(tool: str, argument: str, *values: str) -> list[dict[str, Any]]:
    """A model of this size calls a tool only where it has seen that done."""
    shown = []
    for value in values * 2:
        shown += [asked(value), written_call(tool, **{argument: value})]
    return shown


def forced(name: str) -> dict[str, Any]:
    return {"tool_choice": {"type": "function", "name": name}, "temperature": 0, "max_output_tokens": 200}


@pytest.fixture(scope="module")
def model(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    """With tools in its prompt, which is long then; which call it makes makes no difference here."""
    with running_model(provider, tmp_path_factory.mktemp("tools"), Options(has_tool_template=True)) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(model: RealModel) -> Iterator[RecordingProxy]:
    with RecordingProxy(model.port) as running:
        yield running


@pytest.fixture(scope="module")
def hermes(serve: Callable[..., Server], model: RealModel, proxy: RecordingProxy) -> Server:
    return serve(model, proxy.port)


def test_a_client_gets_the_call_of_the_tool_that_it_names(hermes: Server, proxy: RecordingProxy) -> None:
    shown = examples("get_weather", "city", "Rome", "Oslo")
    body = respond(hermes, input=[*shown, asked("Paris")], tools=[WEATHER], **forced("get_weather"))
    [call] = body["output"]
    assert (body["status"], call["type"], call["name"]) == ("completed", "function_call", "get_weather")
    assert json.loads(call["arguments"])["city"] in CITIES
    check_log(hermes, body["id"])

    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "a green drizzle"}
    after = respond(hermes, input=[result], previous_response_id=body["id"], max_output_tokens=20, temperature=0)
    assert after["status"] in ("completed", "incomplete")
    sent = proxy.bodies_with("a green drizzle")[-1]["messages"][-2:]
    assert [message["role"] for message in sent] == ["assistant", "tool"]
    assert sent[0]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert sent[1]["content"] == "a green drizzle"


def test_a_tool_of_the_server_runs_and_the_model_gets_its_result(
    hermes: Server, proxy: RecordingProxy, model: RealModel
) -> None:
    shown = examples("calculate", "expression", "1+1", "2+2")
    body = respond(hermes, input=[*shown, asked("20+22")], **forced("calculate"))
    kinds = [item["type"] for item in body["output"]]
    assert kinds[:2] == ["function_call", "function_call_output"]
    call, result = body["output"][:2]
    assert call["name"] == "calculate"
    check_log(hermes, body["id"])
    sent = proxy.bodies_with("20+22")
    [first] = [body for body in sent if body["messages"][-1]["content"] == "20+22"]
    if model.provider == "llamacpp":  # it would take the name of a tool for "auto"
        assert first["tool_choice"] == "required"
        assert [tool["function"]["name"] for tool in first["tools"]] == ["calculate"]
    else:
        assert first["tool_choice"] == {"type": "function", "function": {"name": "calculate"}}
    [second] = [body for body in sent if body["messages"][-1].get("tool_call_id") == call["call_id"]]
    assert second["messages"][-1]["content"] == result["output"]
    assert second["tool_choice"] == "auto"
