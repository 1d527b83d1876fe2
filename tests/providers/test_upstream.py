"""A real server in front of a real model's server: what comes through, and what is stopped."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.events import CallArguments, ModelEvent, ModelFinished, TextDelta
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.provider import OpenAIProvider
from gateway_app.providers.openai.sse import EventSplitter
from tests.support.checker import check_log
from tests.support.model_stub import (
    Answer,
    Call,
    Calls,
    Finish,
    Gate,
    ModelStub,
    Raw,
    Refusal,
    Text,
    Thought,
    sse,
)
from tests.support.scripted_requests import respond
from tests.support.server import (
    Server,
    created_id,
    events,
    eventually,
    streaming,
    text,
)
from tests.support.settings_check import check_settings

pytestmark = pytest.mark.any_database

KEY = "sk-upstream-0123456789"
STOP_SECS = 2
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 18,
}


@pytest.fixture(params=["chat_completions", "codex_responses"])
def front(request: pytest.FixtureRequest, make_server: Callable[..., Server], stub: ModelStub) -> Server:
    """A server that asks the stub."""
    return make_server(
        HERMES_PROVIDER="custom",
        HERMES_BASE_URL=stub.url,
        HERMES_API_KEY=KEY,
        HERMES_MODEL="m",
        HERMES_API_MODE=request.param,
    )


def test_what_the_model_says_comes_through(front: Server, stub: ModelStub) -> None:
    script = (Thought("Hm. "), Text("Hello "), Text("wörld 🎉"), Finish())
    stub.play(*script)
    plain = respond(front)
    stub.play(*script)
    with streaming(front, input="hi") as (_, received):
        streamed = events(list(received))[-1]["response"]
    for body in (plain, streamed):
        assert body["status"] == "completed"
        assert body["usage"] == USAGE
        assert [item["type"] for item in body["output"]] == ["reasoning", "message"]
        thought = body["output"][0]
        [part] = thought["summary"] or thought["content"]
        # The stub sends raw reasoning as chat, and summaries as Responses.
        kind = "reasoning_text" if front.env["HERMES_API_MODE"] == "chat_completions" else "summary_text"
        assert part == {"type": kind, "text": "Hm. "}
        assert text(body) == "Hello wörld 🎉"
        check_log(front, body["id"])
    stub.play(Refusal("I can't."), Finish())
    assert respond(front)["output"][0]["content"] == [{"type": "refusal", "refusal": "I can't."}]
    for reason, reported in (("length", "max_output_tokens"), ("content_filter", "content_filter")):
        stub.play(Text("so f"), Finish(reason))
        body = respond(front)
        assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": reported})
    assert {asked.connection for asked in stub.asked} == {1}
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in stub.asked)


def test_a_turn_with_parallel_tools_asks_the_model_again(front: Server, stub: ModelStub) -> None:
    calls = Calls(
        (
            Call("c1", "calculate", ('{"expression"', ':"6*7"}')),
            Call("c2", "calculate", ('{"expression":"', "1+", '1"}')),
        )
    )
    stub.play(calls, Finish("tool_calls"))
    stub.play(Text("42 and 2"), Finish())
    body = respond(front)
    kinds = ["function_call", "function_call", "function_call_output", "function_call_output", "message"]
    assert [item["type"] for item in body["output"]] == kinds
    assert [item["output"] for item in body["output"][2:4]] == ["42", "2"]
    assert body["usage"]["total_tokens"] == 36
    assert "6*7" in str(stub.asked[1].body)
    check_log(front, body["id"])


def test_a_cancelled_turn_stops_the_upstream(front: Server, stub: ModelStub) -> None:
    stub.play(Text("some words "), Gate(threading.Event()))
    response_id = front.openai().responses.create(model="hermes-agent", input="hi", background=True).id
    eventually(lambda: text(front.body(response_id)) == "some words ")
    assert front.openai().responses.cancel(response_id).status == "cancelled"
    eventually(stub.asked[0].hung_up.is_set, STOP_SECS, "the hang-up")
    assert text(front.body(response_id)) == "some words "


def test_leaving_an_unstored_stream_stops_the_upstream(front: Server, stub: ModelStub) -> None:
    stub.play(Text("some words "), Gate(threading.Event()))
    with streaming(front, input="hi", store=False) as (_, received):
        created_id(next(received))
        eventually(lambda: stub.asked)
    eventually(stub.asked[0].hung_up.is_set, STOP_SECS, "the hang-up")


def test_failures_of_the_upstream_end_as_failed_and_show_no_key(front: Server, stub: ModelStub) -> None:
    refusal = f'{{"error": {{"message": "Incorrect API key provided: {KEY}."}}}}'.encode()
    stub.play(Answer(401, refusal))
    stub.play(Answer(429, b'{"error": {"message": "No money.", "code": "insufficient_quota"}}'))
    stub.play(Text("so f"), Raw(sse({"error": {"message": "It broke."}})))
    refused, limited, broken = respond(front), respond(front), respond(front)
    assert [body["status"] for body in (refused, limited, broken)] == ["failed"] * 3
    assert refused["error"]["message"].startswith("upstream_auth_failed")
    assert limited["error"]["code"] == "rate_limit_exceeded"
    assert "No money." in limited["error"]["message"]
    assert broken["error"]["message"] == "The model failed: It broke."
    assert text(broken) == "so f"
    assert len(stub.asked) == 3
    assert KEY not in str(refused) + front.log
    assert "Traceback" not in front.log


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"HERMES_PROVIDER": "openai", "HERMES_API_KEY": "k"}, "HERMES_MODEL"),
        ({"HERMES_PROVIDER": "openai", "HERMES_MODEL": "m"}, "HERMES_API_KEY"),
        ({"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m"}, "HERMES_BASE_URL"),
        ({"HERMES_BASE_URL": "ftp://somewhere"}, "HERMES_BASE_URL"),
        ({"HERMES_API_MODE": "telepathy"}, "HERMES_API_MODE"),
        ({"HERMES_API_KEY": "sch\u00f6n"}, "HERMES_API_KEY"),
        ({"HERMES_STREAM_READ_TIMEOUT": "soon"}, "HERMES_STREAM_READ_TIMEOUT"),
        ({"HERMES_CONNECT_TIMEOUT": "0"}, "HERMES_CONNECT_TIMEOUT"),
        ({"HERMES_STREAM_RETRIES": "11"}, "HERMES_STREAM_RETRIES"),
    ],
)
def test_what_a_provider_lacks_stops_the_start(tmp_path: Path, env: dict[str, str], named: str) -> None:
    done = check_settings(tmp_path, **env)
    assert done.returncode != 0
    assert named in done.stderr.splitlines()[-1]


def test_the_provider_can_be_set_in_config_yaml(tmp_path: Path) -> None:
    config = "model: {provider: custom, default: m, base_url: 'http://127.0.0.1:1/v1', api_mode: codex_responses}\n"
    (tmp_path / "config.yaml").write_text(config)
    assert check_settings(tmp_path).returncode == 0
    (tmp_path / "config.yaml").write_text("model: {provider: custom, default: m}\n")
    assert "HERMES_BASE_URL" in check_settings(tmp_path).stderr.splitlines()[-1]


def test_events_survive_every_cut_and_line_ending() -> None:
    body = ': hi\n\nevent: x\ndata: {"a":"ü🎉"}\n\ndata:1\ndata: 2\nid: 3\n\n\n\ndata: [DONE]'
    wanted = ['{"a":"ü🎉"}'.encode(), b"1\n2", b"[DONE]"]
    for ending in ("\n", "\r\n", "\r"):
        raw = body.replace("\n", ending).encode()
        for cut in range(len(raw)):
            splitter = EventSplitter()
            assert splitter.feed(raw[:cut]) + splitter.feed(raw[cut:]) + splitter.end() == wanted
        splitter = EventSplitter()
        found = [data for place in range(len(raw)) for data in splitter.feed(raw[place : place + 1])]
        assert found + splitter.end() == wanted


# -- servers that bend the protocols ----------------------------------------------------
async def received_events(stub: ModelStub, mode: str, *events: dict[str, Any]) -> list[ModelEvent]:
    opening = [{"type": "response.created", "response": {}}] if mode == "codex_responses" else []
    stub.play(*(Raw(sse(event)) for event in (*opening, *events)))
    provider = OpenAIProvider(Upstream("custom", "m", base_url=stub.url, api_mode=mode))
    asked = ModelCall(model="m", items=[{"type": "message", "role": "user", "content": "hi"}])
    try:
        return [event async for event in provider.stream(asked)]
    finally:
        await provider.aclose()


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def fragment(call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


def arguments_of(found: list[ModelEvent]) -> dict[str, str]:
    reported: dict[str, str] = {}
    for event in found:
        if isinstance(event, CallArguments):
            reported[event.call_id] = reported.get(event.call_id, "") + event.delta
    return reported


async def test_chat_calls_without_an_index_are_distinguished_by_id(stub: ModelStub) -> None:
    calls = [fragment("a", "add", '{"x":1}'), fragment("b", "add", {"x": 2})]
    found = await received_events(stub, "chat_completions", chunk(tool_calls=calls), chunk("stop"))
    assert arguments_of(found) == {"a": '{"x":1}', "b": '{"x":2}'}
    assert isinstance(found[-1], ModelFinished)
    assert found[-1].reason == "tool_calls"


async def test_chat_arguments_before_the_name_and_repeated_ids_are_one_call(stub: ModelStub) -> None:
    pieces = [fragment("a", None, '{"x'), fragment("a", "add", '":'), fragment("a", "add", "1}")]
    found = await received_events(
        stub, "chat_completions", *(chunk(tool_calls=[piece]) for piece in pieces), chunk("tool_calls")
    )
    assert arguments_of(found) == {"a": '{"x":1}'}


async def test_chat_text_between_the_pieces_of_a_call_comes_after_it(stub: ModelStub) -> None:
    first, second = chunk(tool_calls=[fragment("a", "add", "{")]), chunk(tool_calls=[fragment(None, None, "}")])
    found = await received_events(stub, "chat_completions", first, chunk(content="so"), second, chunk("tool_calls"))
    assert arguments_of(found) == {"a": "{}"}
    assert found[-2] == TextDelta("so")


async def test_a_chat_stream_that_ends_without_done_but_with_a_reason_is_whole(stub: ModelStub) -> None:
    found = await received_events(stub, "chat_completions", chunk(content="so"), chunk("stop"))
    assert [type(event) for event in found] == [TextDelta, ModelFinished]


async def test_a_responses_stream_of_whole_items_is_understood(stub: ModelStub) -> None:
    call = {"type": "function_call", "id": "x", "call_id": "a", "name": "add", "arguments": '{"x":1}'}
    reply = {"type": "message", "id": "y", "content": [{"type": "output_text", "text": "so"}]}
    items = [
        {"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate((reply, call))
    ]
    streamed = await received_events(
        stub, "codex_responses", *items, {"type": "response.completed", "response": {"output": [call]}}
    )
    whole = await received_events(
        stub, "codex_responses", {"type": "response.completed", "response": {"output": [reply, call], "usage": None}}
    )
    assert streamed == whole
    assert whole[1] == TextDelta("so")
    assert arguments_of(whole) == {"a": '{"x":1}'}


async def test_responses_items_are_followed_without_indexes_or_with_changing_ids(stub: ModelStub) -> None:
    def story(by_id: bool) -> list[dict[str, Any]]:
        def about(number: int, kind: str, **fields: Any) -> dict[str, Any]:
            place = {"item_id": f"id{number}"} if by_id else {"output_index": number, "item_id": kind}
            return {"type": f"response.{kind}", **place, **fields}

        calls = [
            {"type": "function_call", "id": f"id{n}", "call_id": f"c{n}", "name": "add", "arguments": ""}
            for n in range(2)
        ]
        return [
            *(about(n, "output_item.added", item=calls[n]) for n in range(2)),
            *(about(n, "function_call_arguments.delta", delta=f'{{"n":{n}') for n in (1, 0)),
            *(about(n, "function_call_arguments.done", arguments=f'{{"n":{n}}}') for n in range(2)),
            *(about(n, "output_item.done", item=calls[n] | {"arguments": f'{{"n":{n}}}'}) for n in (1, 0)),
            {"type": "response.completed", "response": {"output": []}},
        ]

    for by_id in (True, False):
        found = await received_events(stub, "codex_responses", *story(by_id))
        assert arguments_of(found) == {"c0": '{"n":0}', "c1": '{"n":1}'}
