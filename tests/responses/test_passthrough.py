"""What is unknown here, between a client and an upstream that both speak the Responses API."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Call,
    Calls,
    Finish,
    ModelStub,
    Raw,
    StreamStyle,
    Text,
    sse,
)
from tests.support.server import Server
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database


@pytest.fixture
def front(make_server: Callable[..., Server], stub: ModelStub) -> Server:
    return make_server(
        HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_API_MODE="codex_responses"
    )


def create(server: Server, **body: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def item_events(index: int, item: dict[str, Any]) -> Raw:
    kinds = ("response.output_item.added", "response.output_item.done")
    return Raw(b"".join(sse({"type": kind, "output_index": index, "item": item}, kind) for kind in kinds))


def test_unknown_fields_and_hosted_tools_reach_the_upstream(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    tools = [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {}}]
    create(front, input="x", tools=tools, client_metadata={"a": "b"}, include=["reasoning.encrypted_content"])
    sent = stub.asked[-1].body
    assert sent["client_metadata"] == {"a": "b"}
    assert [tool["type"] for tool in sent["tools"]] == ["function", "web_search"]
    assert sent["include"] == ["reasoning.encrypted_content"]


def test_items_of_other_kinds_come_back_and_are_sent_again(front: Server, stub: ModelStub) -> None:
    action = {"type": "search", "query": "q"}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    stub.play(item_events(0, search), Text("found"), Finish())
    first = create(front, input="x")
    assert [item["type"] for item in first["output"]] == ["web_search_call", "message"]
    assert first["output"][0]["action"] == action
    assert first["output"][0]["id"] != "ws_1"
    rows = stored_rows(front, "eventsegment", "frames", response_id=first["id"])
    assert b"ws_1" in b"".join(bytes(row[0]) for row in rows)  # kept beside, for the operators
    check_log(front, first["id"])
    stub.play(Text("again"), Finish())
    create(front, input="y", previous_response_id=first["id"])
    assert [item["type"] for item in stub.asked[-1].body["input"]] == [
        "message",
        "web_search_call",
        "message",
        "message",
    ]


def test_sealed_reasoning_is_carried_from_turn_to_turn(front: Server, stub: ModelStub) -> None:
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbA=="}
    stub.play(item_events(0, sealed), Text("thought"), Finish())
    first = create(front, input="x", include=["reasoning.encrypted_content"])
    assert (first["output"][0]["encrypted_content"], first["output"][0]["summary"]) == ("c2VhbA==", [])
    check_log(front, first["id"])
    stub.play(Text("again"), Finish())
    create(front, input="y", previous_response_id=first["id"])
    assert stub.asked[-1].body["input"][1]["encrypted_content"] == "c2VhbA=="


def test_images_formats_and_forced_calls_reach_both_kinds_of_upstream(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    chat = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    stub.play(Text("{}"), Finish())
    create(chat, input=[{"role": "user", "content": [image]}], text={"format": schema}, temperature=0.5, tools=[])
    sent = stub.asked[-1].body
    assert sent["messages"][0]["content"][0]["image_url"] == {"url": image["image_url"], "detail": "low"}
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert sent["temperature"] == 0.5


def test_messages_keep_their_phase_and_their_bounds(front: Server, stub: ModelStub) -> None:
    for number, phase in enumerate(("commentary", "final_answer")):
        content = [{"type": "output_text", "text": phase, "annotations": []}]
        message = {"type": "message", "role": "assistant", "phase": phase, "content": content}
        stub.play(item_events(0, message), item_events(1, {**message, "phase": "final_answer"}), Finish())
        first = create(front, input=f"x{number}")
        assert [item["phase"] for item in first["output"]] == [phase, "final_answer"]
        check_log(front, first["id"])
        stub.play(Text("again"), Finish())
        create(front, input="y", previous_response_id=first["id"])
        sent = stub.asked[-1].body["input"]
        assert [item.get("phase") for item in sent] == [None, phase, "final_answer", None]


def test_a_forced_call_of_a_server_tool_is_forced_once(front: Server, stub: ModelStub) -> None:
    stub.play(Calls((Call("call_1", "calculate", ('{"expression": "1+1"}',)),)), Finish("tool_calls"))
    stub.play(Text("two"), Finish())
    create(front, input="x", tool_choice="required")
    assert [asked.body["tool_choice"] for asked in stub.asked] == ["required", "auto"]


def test_parallel_calls_without_ids_stay_two_calls(make_server: Callable[..., Server], stub: ModelStub) -> None:
    chat = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    calls = [{"function": {"name": name, "arguments": '{"a":1}'}} for name in ("f", "g")]
    choice = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}
    stub.play(Raw(sse({"choices": [choice]})), Finish("tool_calls"))
    tools = [{"type": "function", "name": name} for name in ("f", "g")]
    output = create(chat, input="x", tools=tools)["output"]
    assert [(item["name"], item["arguments"]) for item in output] == [("f", '{"a":1}'), ("g", '{"a":1}')]
    assert len({item["call_id"] for item in output}) == 2


def test_what_was_put_up_with_is_on_the_row(front: Server, stub: ModelStub) -> None:
    opening = {"type": "codex.rate_limits", "plan_type": "plus"}
    stub.play(StreamStyle(has_opening=False, has_output=False), Raw(sse(opening)), Text("live"), Finish())
    body = create(front, input="x")
    assert body["output"][0]["content"][0]["text"] == "live"
    [(deviations,)] = stored_rows(front, "response", "protocol_deviations", id=body["id"])
    assert json.loads(deviations) == ["no response.created before codex.rate_limits"]


def test_citations_come_through(front: Server, stub: ModelStub) -> None:
    cited = {"type": "url_citation", "url": "https://example.invalid", "title": "t", "start_index": 0, "end_index": 2}
    added = {
        "type": "response.output_text.annotation.added",
        "output_index": 0,
        "content_index": 0,
        "annotation_index": 0,
        "annotation": cited,
    }
    stub.play(Text("so"), Raw(sse(added, str(added["type"]))), Finish())
    body = create(front, input="x")
    assert body["output"][0]["content"][0]["annotations"] == [cited]
    check_log(front, body["id"])


def test_images_of_tool_outputs_reach_a_chat_upstream(make_server: Callable[..., Server], stub: ModelStub) -> None:
    chat = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    stub.play(Calls((Call("call_1", "shoot", ("{}",)),)), Finish("tool_calls"))
    tools = [{"type": "function", "name": "shoot"}]
    first = create(chat, input="x", tools=tools)
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    stub.play(Text("a cat"), Finish())
    output = [{"type": "function_call_output", "call_id": "call_1", "output": [image]}]
    create(chat, input=output, tools=tools, previous_response_id=first["id"])
    tool, shown = stub.asked[-1].body["messages"][-2:]
    assert tool["role"] == "tool"
    assert shown == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": image["image_url"]}}]}
