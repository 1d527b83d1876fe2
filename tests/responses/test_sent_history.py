"""The calls in a conversation as an upstream is sent them: valid, answered, in order, and always the same.

The upstream refuses any other conversation, as Ollama, vLLM and llama-server do.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from tests.support.chat_client import WEATHER, complete, user
from tests.support.checker import check_log
from tests.support.hermes_client import post
from tests.support.migrated_database import Database
from tests.support.model_stub import Call, Calls, Finish, ModelStub
from tests.support.scripted_requests import effects, respond
from tests.support.server import Server, eventually
from tests.support.session_client import create_session, send_message
from tests.support.strict_history import exchanges, flaw_in

pytestmark = pytest.mark.any_database

TRAILING_COMMA = '{"expression": "6*7",}'
OPEN_STRING = '{"expression": "6*'
NOT_AN_OBJECT = '["6*7"]'
WEATHER_TOOL = {"type": "function", **WEATHER["function"]}


@dataclass(frozen=True)
class Front:
    """A server and its upstream, with the requests since the test began."""

    server: Server
    stub: ModelStub
    first: int = 0

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.stub.asked[self.first :]]

    def sent_arguments(self) -> list[str]:
        """In the newest request."""
        return [arguments for made, _ in exchanges(self.requests[-1]) for _, arguments in made]

    def assert_each_request_goes_on_from_the_one_before(self) -> None:
        conversations = [body.get("messages") or body["input"] for body in self.requests]
        for before, after in pairwise(conversations):
            assert after[: len(before)] == before


def upstream_env(stub: ModelStub, mode: str) -> dict[str, str]:
    stub.refuse = flaw_in
    return {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_API_MODE": mode}


@pytest.fixture(scope="module", params=["chat_completions", "codex_responses"])
def running(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    with ModelStub() as stub:
        home = tmp_path_factory.mktemp("sent") / "h"
        server = database.server(home, Server, **upstream_env(stub, str(request.param))).start()
        yield Front(server, stub)
        server.kill()


@pytest.fixture
def front(running: Front) -> Front:
    return replace(running, first=len(running.stub.asked))


def calls(*arguments: str, name: str = "calculate") -> Calls:
    return Calls(tuple(Call(f"c{number}", name, (text,)) for number, text in enumerate(arguments)))


def written(body: dict[str, Any]) -> list[str]:
    return [item["arguments"] for item in body["output"] if item["type"] == "function_call"]


def outputs(body: dict[str, Any]) -> list[str]:
    return [item["output"] for item in body["output"] if item["type"] == "function_call_output"]


def test_malformed_arguments_spoil_no_later_turn(front: Front) -> None:
    made = (TRAILING_COMMA, OPEN_STRING, NOT_AN_OBJECT)
    front.stub.play(calls(*made), Finish("tool_calls"))
    first = respond(front.server)
    assert first["status"] == "completed", first["error"]
    assert written(first) == list(made)
    by_call = {item["call_id"]: item["output"] for item in first["output"] if item["type"] == "function_call_output"}
    assert by_call["c0"] == "42"
    assert "does not end" in by_call["c1"]
    assert "they are an array" in by_call["c2"]
    assert front.sent_arguments() == ['{"expression":"6*7"}', "{}", "{}"]
    second = respond(front.server, previous_response_id=first["id"])
    assert second["status"] == "completed", second["error"]
    assert respond(front.server, previous_response_id=second["id"])["status"] == "completed"
    assert front.sent_arguments() == ['{"expression":"6*7"}', "{}", "{}"]
    front.assert_each_request_goes_on_from_the_one_before()
    for body in (first, second):
        check_log(front.server, body["id"])


def test_the_client_of_a_tool_gets_what_the_model_wrote(front: Front) -> None:
    front.stub.play(calls('{"city": "Par', name="functions.get_weather:0"), Finish("tool_calls"))
    first = respond(front.server, tools=[WEATHER_TOOL])
    [call] = first["output"]
    assert (call["name"], call["arguments"], call["status"]) == ("get_weather", '{"city": "Par', "completed")
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "That is no city."}
    second = respond(front.server, input=[answer], previous_response_id=first["id"], tools=[WEATHER_TOOL])
    assert second["status"] == "completed", second["error"]
    assert front.sent_arguments() == ["{}"]


def test_history_that_a_client_sends_again_is_cleaned_too(front: Front) -> None:
    function = {"name": "get_weather", "arguments": "{'city': 'Paris'}"}
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    messages = [user("hi"), called, {"role": "tool", "tool_call_id": "a", "content": "sunny"}, user("and now?")]
    assert complete(front.server, messages, tools=[WEATHER])["choices"][0]["message"]["content"] == "Hello wörld 🎉"
    assert front.sent_arguments() == ['{"city":"Paris"}']
    items = [
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "Paris"},
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
    ]
    body = respond(front.server, input=items)
    assert (body["status"], front.sent_arguments()) == ("completed", ["{}"])


def test_a_fork_is_sent_the_same(front: Front) -> None:
    session_id = create_session(front.server)["id"]
    front.stub.play(calls(OPEN_STRING, TRAILING_COMMA), Finish("tool_calls"))
    first = send_message(front.server, session_id)
    forked = post(front.server, f"/api/sessions/{session_id}/fork", {"response_id": first["response_id"]}).json()
    send_message(front.server, forked["session"]["id"])
    assert front.sent_arguments() == ["{}", '{"expression":"6*7"}']
    front.assert_each_request_goes_on_from_the_one_before()


def test_free_text_of_a_custom_tool_is_not_touched(front: Front) -> None:
    patch = {"type": "custom", "name": "apply_patch"}
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": '{"a": 1,}'},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "done"},
    ]
    respond(front.server, input=items, tools=[patch])
    assert json.dumps('{"a": 1,}')[1:-1] in json.dumps(front.requests[-1]).replace("\\\\\\", "\\")


def test_a_tool_that_is_not_there_answers_with_those_that_are(front: Front) -> None:
    front.stub.play(calls("{}", name="functions.missing:0"), Finish("tool_calls"))
    body = respond(front.server)
    [output] = outputs(body)
    assert "there is no tool named 'functions.missing:0'. The tools are: " in output
    assert "calculate" in output
    assert body["status"] == "completed", body["error"]


# -- the order of results ---------------------------------------------------------------
def start_slow_and_fast(front: Front) -> str:
    """The second call ends first; the first one needs a repair."""
    slow, fast = '{"text": "safe slow", "gate": "slow",}', '{"text": "fast"}'
    front.stub.play(calls(slow, fast, name="parallel_effect"), Finish("tool_calls"))
    response_id: str = respond(front.server, background=True)["id"]
    eventually(lambda: outputs(front.server.body(response_id)) == ["fast"], what="the result of the second call")
    return response_id


def assert_results_are_in_order(front: Front, response_id: str) -> None:
    """In this turn and in the next; clients got each result as it came."""
    front.server.open_gate("slow")
    body = front.server.ended(response_id)
    assert (body["status"], outputs(body)) == ("completed", ["fast", "safe slow"])
    assert respond(front.server, previous_response_id=response_id)["status"] == "completed"
    front.assert_each_request_goes_on_from_the_one_before()
    for sent in front.requests[1:]:
        [(made, answered)] = exchanges(sent)
        assert [call_id for call_id, _ in made] == answered
    check_log(front.server, response_id)


def test_results_are_sent_in_the_order_of_the_calls(front: Front) -> None:
    assert_results_are_in_order(front, start_slow_and_fast(front))


@pytest.mark.fault
def test_results_before_and_behind_a_kill_are_sent_in_the_order_of_the_calls(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(**upstream_env(stub, "chat_completions"))
    front = Front(server, stub)
    response_id = start_slow_and_fast(front)
    server.kill()
    server.start()
    eventually(lambda: effects(server, "safe slow") == 2, what="the second run of the first call")
    assert_results_are_in_order(front, response_id)
