"""A real server in front of a model's server that breaks: what its clients see, and what they never see."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Answer,
    Begun,
    Call,
    Calls,
    Cut,
    Finish,
    ModelStub,
    Raw,
    Reset,
    StreamStyle,
    Text,
    sse,
)
from tests.support.scripted_requests import respond
from tests.support.server import Server, eventually, text
from tests.support.settings_check import check_settings
from tests.support.stored_rows import count_rows, stored_rows

pytestmark = pytest.mark.any_database

SOON = Answer(429, b'{"error": {"message": "Slow down."}}', {"Retry-After": "0.05"})
SUM = Call("c1", "calculate", ('{"expression":', ' "6*7"}'))
HALF_A_SUM = Begun(Call("c1", "calculate", ('{"expression": "6*',)))


@pytest.fixture
def front(make_server: Callable[..., Server], stub: ModelStub, mode: str) -> Server:
    env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_API_MODE": mode}
    return make_server(**env, HERMES_STREAM_READ_TIMEOUT="0.5")


def kinds(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["type"], item.get("status", "")) for item in body["output"]]


def test_a_broken_answer_goes_on_in_a_new_item_and_a_broken_call_is_not_run(front: Server, stub: ModelStub) -> None:
    stub.play(SOON)
    stub.play(Text("Grüße, "), Reset())
    stub.play(SOON)
    stub.play(Text("wörld. "), HALF_A_SUM, Cut())
    stub.play(Calls((SUM,)), Finish("tool_calls"))
    stub.play(Text("It is 42."), Finish())
    body = respond(front, input="hi")
    assert body["status"] == "completed"
    assert text(body) == "Grüße, wörld. It is 42."
    assert kinds(body) == [
        ("message", "incomplete"),
        ("message", "completed"),
        ("function_call", "incomplete"),
        ("function_call", "completed"),
        ("function_call_output", "completed"),
        ("message", "completed"),
    ]
    assert "cut off" not in json.dumps(body)
    assert stored_rows(front, "toolevent", "name", "status") == [("calculate", "completed")]
    assert body["usage"]["total_tokens"] > 36  # two answers were counted, and two broke off
    assert stored_rows(front, "response", "is_usage_estimated") == [(True,)]
    check_log(front, body["id"])
    stub.play(Text("Sure."), Finish())
    assert respond(front, input="And now?", previous_response_id=body["id"])["status"] == "completed"
    assert "6*" not in str(stub.asked[-1].body).replace("6*7", "")


def test_what_can_not_be_mended_ends_as_incomplete_or_failed(front: Server, stub: ModelStub) -> None:
    for _ in range(5):
        stub.play(Text("so "), Cut())
    for _ in range(4):
        stub.play(HALF_A_SUM, Cut())
    stub.play(Text("{}"), Finish())  # from now on documents are streamed
    stub.play(Text('{"a"'), Cut())
    stub.play(Answer(400, b'{"error": {"message": "Too long.", "code": "context_length_exceeded"}}'))
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    cut, dropped = respond(front), respond(front)
    assert respond(front, text={"format": schema})["status"] == "completed"
    document, too_long = respond(front, text={"format": schema}), respond(front)
    reasons = [body["incomplete_details"]["reason"] for body in (cut, dropped, document)]
    assert reasons == ["upstream_cut", "tool_call_dropped", "upstream_cut"]
    assert (text(cut), text(document)) == ("so " * 5, '{"a"')
    assert (too_long["status"], too_long["error"]["code"]) == ("failed", "invalid_prompt")
    assert count_rows(front, "toolevent") == 0
    for body in (cut, dropped, document, too_long):
        check_log(front, body["id"])
    assert "Traceback" not in front.log


def test_a_client_need_not_answer_a_call_that_was_cut(front: Server, stub: ModelStub) -> None:
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    stub.play(Calls((Call("c1", "look", ("{}",)),)), Begun(Call("c2", "look", ('{"a',))), Cut())
    asked = respond(front, tools=tools)
    assert kinds(asked) == [("function_call", "completed"), ("function_call", "incomplete")]
    answer = {"type": "function_call_output", "call_id": asked["output"][0]["call_id"], "output": "a cat"}
    reported = respond(front, input=[answer], tools=tools, previous_response_id=asked["id"])
    assert reported["status"] == "completed"


def test_a_turn_that_waits_for_its_upstream_can_be_cancelled(front: Server, stub: ModelStub) -> None:
    stub.play(Answer(503, b"{}", {"Retry-After": "50"}))
    response_id = front.openai().responses.create(model="hermes-agent", input="hi", background=True).id
    eventually(lambda: stub.asked)
    assert front.openai().responses.cancel(response_id).status == "cancelled"
    check_log(front, response_id)
    assert len(stub.asked) == 1


def test_a_relay_that_leaves_out_the_first_event_streams_like_any_other(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    env = {"HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_API_MODE": "codex_responses"}
    begin = Raw(sse({"type": "response.in_progress", "response": {}}))
    script = (StreamStyle(has_opening=False, has_output=False), begin, Text("Grüße, "), Text("wörld"), Finish())
    stub.play(*script)
    body = respond(make_server(HERMES_PROVIDER="custom", **env))
    assert (body["status"], text(body)) == ("completed", "Grüße, wörld")
    stub.play(*script)
    strict = make_server(HERMES_PROVIDER="openai", HERMES_API_KEY="k-0123456789", **env)
    refused = respond(strict)
    assert refused["status"] == "failed"
    assert "expected response.created before response.in_progress" in refused["error"]["message"]
    assert len(stub.asked) == 2


# -- fallback models --------------------------------------------------------------------
def test_fallback_models_of_the_config_take_over(database: Any, stub: ModelStub, tmp_path: Path) -> None:
    env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_API_KEY": "k-first"}
    with ModelStub() as other:
        elsewhere = {"base_url": other.url, "default": "m3", "api_mode": "codex_responses"}
        server: Server = database.server(tmp_path / "home", Server, **env, HERMES_STREAM_RETRIES="0")
        (server.home / "config.yaml").write_text(json.dumps({"fallback_models": ["m2", elsewhere]}))
        for _ in range(2):
            stub.play(Answer(503, b"{}"))
        try:
            body = respond(server.start())
        finally:
            server.kill()
        assert text(body) == "Hello wörld 🎉"
        assert [asked.body["model"] for asked in (*stub.asked, *other.asked)] == ["m", "m2", "m3"]
        assert stub.asked[1].headers["authorization"] == "Bearer k-first"
        assert "authorization" not in other.asked[0].headers


@pytest.mark.parametrize(
    ("fallbacks", "named"),
    [
        ("m2", "fallback_models must be a list"),
        ([5], "fallback_models[0] must be"),
        (["m2", {"base_url": "http://x/v1"}], "fallback_models[1].model"),
        ([{"modle": "m2"}], "fallback_models[0].modle"),
        ([{"model": "m2", "base_url": "ftp://x"}], "fallback_models[0].base_url"),
        ([{"model": "m2", "provider": "oracle"}], "fallback_models[0].provider"),
        ([{"model": "m2", "provider": "openai"}], "fallback_models[0].api_key"),
        ([{"model": "m2", "api_mode": "telepathy"}], "fallback_models[0].api_mode"),
        ([{"model": "m2", "default": "m3"}], "fallback_models[0]"),
        ([{"model": 5}], "fallback_models[0].model"),
    ],
)
def test_a_bad_fallback_stops_the_start(tmp_path: Path, fallbacks: Any, named: str) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps({"fallback_models": fallbacks}))
    env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": "http://127.0.0.1:1/v1", "HERMES_MODEL": "m"}
    done = check_settings(tmp_path, **env)
    assert done.returncode != 0
    assert f"config.yaml: {named}" in done.stderr.splitlines()[-1]


def test_a_name_alone_is_no_fallback_for_the_built_in_model(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('fallback_models: ["m2"]\n')
    assert "fallback_models[0].provider" in check_settings(tmp_path).stderr.splitlines()[-1]
    (tmp_path / "config.yaml").write_text("fallback_models: [{provider: builtin}]\n")
    assert check_settings(tmp_path).returncode == 0
