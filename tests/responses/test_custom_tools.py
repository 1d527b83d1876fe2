"""Tools whose input is free text: the client's, like functions, over both kinds of upstream."""

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Call,
    Calls,
    Finish,
    ModelStub,
    Raw,
    Text,
    sse,
)
from tests.support.server import (
    Server,
    events,
    script,
    streaming,
)

pytestmark = pytest.mark.any_database

PATCH: Any = {"type": "custom", "name": "apply_patch", "description": "Changes files.", "format": {"type": "text"}}


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


def front(make_server: Callable[..., Server], stub: ModelStub, mode: str) -> Server:
    return make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_API_MODE=mode)


def test_a_custom_call_streams_its_input_and_ends_the_response(server: Server) -> None:
    patch = script({"call": "apply_patch", "arguments": {"input": "*** Begin"}})
    with streaming(server, input=patch, tools=[PATCH]) as (answer, received):
        found = events(list(received))
        assert "X-Hermes-Ignored" not in answer.headers
    kinds = [event["type"] for event in found]
    assert kinds.count("response.custom_tool_call_input.delta") == 2
    assert kinds[-3:] == [
        "response.custom_tool_call_input.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert found[-3]["input"] == "*** Begin"
    [call] = found[-1]["response"]["output"]
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "apply_patch", "*** Begin")


def test_the_strict_helper_takes_it_and_the_answer_goes_on(server: Server) -> None:
    client = server.openai()
    with client.responses.stream(
        model="hermes-agent", input="go", tools=[PATCH], tool_choice={"type": "custom", "name": "apply_patch"}
    ) as stream:
        for _ in stream:
            pass
        first = stream.get_final_response()
    [call] = first.output
    assert call.type == "custom_tool_call"
    output: Any = [{"type": "custom_tool_call_output", "call_id": call.call_id, "output": "patched"}]
    second = client.responses.create(model="hermes-agent", input=output, previous_response_id=first.id)
    assert second.output_text == "The result is patched."
    with pytest.raises(openai.BadRequestError, match=call.call_id):
        client.responses.create(model="hermes-agent", input="never mind", previous_response_id=first.id)


def test_a_chat_upstream_sees_a_function_with_one_text(make_server: Callable[..., Server], stub: ModelStub) -> None:
    server = front(make_server, stub, "chat_completions")
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /x+/"}
    stub.play(Calls((Call("call_1", "apply_patch", ('{"inp', 'ut": "a\\nb"}')),)), Finish("tool_calls"))
    client = server.openai()
    tools: Any = [{**PATCH, "format": grammar}]
    first = client.responses.create(model="hermes-agent", input="go", tools=tools)
    [call] = first.output
    assert call.type == "custom_tool_call"
    assert call.input == "a\nb"
    check_log(server, first.id)
    sent = stub.asked[-1].body["tools"][0]["function"]
    assert sent["parameters"]["required"] == ["input"]
    assert "start: /x+/" in sent["description"]
    stub.play(Text("done"), Finish())
    output: Any = [{"type": "custom_tool_call_output", "call_id": "call_1", "output": "patched"}]
    client.responses.create(model="hermes-agent", input=output, previous_response_id=first.id, tools=[PATCH])
    called, answered = stub.asked[-1].body["messages"][-2:]
    assert called["tool_calls"][0]["function"]["arguments"] == '{"input":"a\\nb"}'
    assert answered == {"role": "tool", "tool_call_id": "call_1", "content": "patched"}


def test_a_responses_upstream_streams_it_as_it_is(make_server: Callable[..., Server], stub: ModelStub) -> None:
    server = front(make_server, stub, "codex_responses")
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_9", "name": "apply_patch", "input": ""}
    reported = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "*** "},
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "End"},
        {"type": "response.custom_tool_call_input.done", "output_index": 0, "item_id": "ctc_1", "input": "*** End"},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "input": "*** End"}},
    ]
    stub.play(Raw(b"".join(sse(event, str(event["type"])) for event in reported)), Finish())
    client = server.openai()
    with streaming(server, input="go", tools=[PATCH]) as (_, received):
        found = events(list(received))
    deltas = [event["delta"] for event in found if event["type"] == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** ", "End"]
    first = found[-1]["response"]
    assert first["output"][0]["call_id"] == "call_9"
    assert stub.asked[-1].body["tools"] == [PATCH]
    stub.play(Text("done"), Finish())
    output: Any = [{"type": "custom_tool_call_output", "call_id": "call_9", "output": "ok"}]
    client.responses.create(model="hermes-agent", input=output, previous_response_id=first["id"])
    called, answered = stub.asked[-1].body["input"][-2:]
    assert called == {"type": "custom_tool_call", "call_id": "call_9", "name": "apply_patch", "input": "*** End"}
    assert answered["output"] == "ok"
