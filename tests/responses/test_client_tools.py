"""Tools that the client runs: the call ends the response, the answer comes with the next request."""

from typing import Any

import openai
import pytest

from tests.support.server import (
    Server,
    events,
    script,
    streaming,
)
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": None,
}


def ask(server: Server, **fields: Any) -> Any:
    request = {"model": "hermes-agent", "input": "What is the weather in Paris?", "tools": [WEATHER], **fields}
    return server.openai().responses.create(**request)


def test_a_call_ends_the_response_with_its_arguments_streamed(server: Server) -> None:
    with streaming(server, input="What is the weather?", tools=[WEATHER]) as (_, received):
        found = events(list(received))
    kinds = [event["type"] for event in found]
    assert kinds[2] == "response.output_item.added"
    assert kinds.count("response.function_call_arguments.delta") == 2
    assert kinds[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    [call] = found[-1]["response"]["output"]
    assert (call["name"], call["arguments"], call["status"]) == ("get_weather", '{"city":"sample"}', "completed")
    assert not stored_rows(server, "toolevent", "id", name="get_weather")


def test_the_round_trip_by_chain(server: Server) -> None:
    first = ask(server)
    [call] = first.output
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    second = server.openai().responses.create(model="hermes-agent", input=output, previous_response_id=first.id)
    assert second.output_text == "The result is sunny."


def test_the_round_trip_by_resent_history(server: Server) -> None:
    first = ask(server)
    history: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
    history += [item.to_dict() for item in first.output]
    history += [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": "rainy"}]
    second = server.openai().responses.create(model="hermes-agent", input=history, tools=[WEATHER])
    assert second.output_text == "The result is rainy."


def test_parallel_calls_come_as_items_of_their_own(server: Server) -> None:
    both = script(
        {"call": "get_weather", "arguments": {"city": "Paris"}}, {"call": "get_weather", "arguments": {"city": "Rome"}}
    )
    first = ask(server, input=both)
    assert [item.type for item in first.output] == ["function_call", "function_call"]
    outputs: Any = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "warm"} for item in first.output
    ]
    second = server.openai().responses.create(model="hermes-agent", input=outputs, previous_response_id=first.id)
    assert second.status == "completed"


def test_a_client_call_beside_a_server_call_gets_both_answered(server: Server) -> None:
    """With tools of its own a request has only those; the profile's toolset is not among them."""
    mixed = script({"call": "calculate", "arguments": {"expression": "1+1"}}, {"call": "get_weather", "arguments": {}})
    first = ask(server, input=mixed)
    assert [item.type for item in first.output] == ["mcp_call", "function_call"]
    assert "no tool named" in str(first.output[0].error)


@pytest.mark.parametrize(
    ("choice", "is_called"),
    [
        ("auto", False),
        ("none", False),
        ("required", True),
        ({"type": "function", "name": "get_weather"}, True),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}, True),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}, False),
    ],
    ids=range(6),
)
def test_a_tool_choice_forces_or_forbids(server: Server, choice: Any, is_called: bool) -> None:
    body = ask(server, input="hello", tool_choice=choice)
    assert (body.output[0].type == "function_call") is is_called


def test_no_tools_at_all_means_none_of_the_servers_either(server: Server) -> None:
    body = ask(server, input="calculate 1+1", tools=[])
    assert [item.type for item in body.output] == ["message"]


def test_an_unanswered_call_is_a_400_that_names_it(server: Server) -> None:
    first = ask(server)
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().responses.create(model="hermes-agent", input="never mind", previous_response_id=first.id)
    assert first.output[0].call_id in refused.value.message


def test_a_child_that_waited_fails_when_its_parent_left_a_call_open(server: Server) -> None:
    gate = script({"gate": "open-call"}, {"call": "get_weather", "arguments": {}})
    parent = ask(server, input=gate, background=True)
    child = ask(server, input="meanwhile", background=True, previous_response_id=parent.id)
    assert child.status == "queued"
    server.open_gate("open-call")
    body = server.ended(child.id)
    assert body["status"] == "failed"
    assert body["error"]["code"] == "invalid_prompt"
    assert "No tool output found" in body["error"]["message"]


def test_an_unanswered_call_in_a_conversation_or_session_is_refused_too(server: Server) -> None:
    places: list[dict[str, Any]] = [
        {"conversation": "unanswered"},
        {"extra_headers": {"X-Hermes-Session-Id": "unanswered-session"}},
    ]
    for number, where in enumerate(places):
        first = ask(server, **where)
        with pytest.raises(openai.BadRequestError) as refused:
            ask(server, input=f"never mind {number}", **where)
        assert first.output[0].call_id in refused.value.message


def test_an_answer_to_no_call_is_a_400_that_names_it(server: Server) -> None:
    first = server.openai().responses.create(model="hermes-agent", input="hi")
    output: Any = [{"type": "function_call_output", "call_id": "call_unknown", "output": "x"}]
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().responses.create(model="hermes-agent", input=output, previous_response_id=first.id)
    assert refused.value.param == "input[0].call_id"


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_a_call_in_the_body_without_its_answer_is_a_400_that_names_it(server: Server, kind: str) -> None:
    call = {"type": kind, "call_id": "call_lonely", "name": "f", "arguments": "{}", "input": "x"}
    history: Any = [{"role": "user", "content": "hi"}, call, {"role": "user", "content": "so?"}]
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().responses.create(model="hermes-agent", input=history)
    assert refused.value.param == "input[1].call_id"
    assert "call_lonely" in refused.value.message


def test_a_call_that_was_cut_is_reported_to_the_model_and_asks_for_no_answer(server: Server) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": '{"ci', "status": "incomplete"}
    history: Any = [{"role": "user", "content": "hi"}, call, {"role": "user", "content": "after-a-cut-call"}]
    assert server.openai().responses.create(model="hermes-agent", input=history).status == "completed"
    seen = server.model_calls("after-a-cut-call")[0]["texts"]
    assert any("get_weather was cut off" in text for text in seen)


def test_a_forced_call_needs_a_tool(server: Server) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(server, tools=[], tool_choice="required")
    assert refused.value.param == "tool_choice"


def test_an_answer_given_through_the_conversation_counts(server: Server) -> None:
    client = server.openai()
    first = ask(server, conversation="answered-elsewhere")
    items: Any = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": "mild"}]
    assert first.conversation is not None
    client.conversations.items.create(first.conversation.id, items=items)
    assert ask(server, input="thanks", conversation="answered-elsewhere", tools=[]).status == "completed"


def test_outputs_whose_call_was_deleted_are_not_shown_to_the_model(server: Server) -> None:
    client = server.openai()
    first = ask(server, input="orphan weather")
    output: Any = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": "orphan-hail"}]
    second = client.responses.create(model="hermes-agent", input=output, previous_response_id=first.id)
    client.responses.delete(first.id)
    client.responses.create(model="hermes-agent", input="orphan-next", previous_response_id=second.id)
    assert "orphan-hail" not in server.model_calls("orphan-next")[0]["texts"]


def test_hostile_arguments_fail_no_turn(server: Server) -> None:
    hostile = script({"call": "nul\0name", "arguments": {"expression": "a\0b"}}, {"say": "x"})
    body = server.openai().responses.create(model="hermes-agent", input=hostile)
    assert body.status == "completed"
