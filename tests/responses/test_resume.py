"""After a kill -9 the agent goes on where it was: text in a new item, tools by the ledger."""

import signal
from collections.abc import Callable

import pytest

from responses_app.protocol.sse import decode_frame
from tests.support.checker import check_log
from tests.support.restarts import has_output, start_and_kill
from tests.support.scripted_requests import call, effects
from tests.support.server import (
    Server,
    created_id,
    eventually,
    script,
    streaming,
    text,
)
from tests.support.stored_rows import stored_rows, tool_calls

pytestmark = [pytest.mark.any_database, pytest.mark.fault]


def test_a_cut_message_is_closed_and_continued_in_a_new_item(make_server: Callable[..., Server]) -> None:
    server = make_server()
    asked = script({"say": "one two "}, {"gate": "go on"}, {"say": "three four"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
        for frame in received:
            if b"two " in frame:
                break
        seen = decode_frame(frame)["sequence_number"]
    server.kill()
    server.start()
    server.open_gate("go on")
    body = server.ended(response_id)
    assert body["status"] == "completed"
    assert [item["status"] for item in body["output"]] == ["incomplete", "completed"]
    assert [item["content"][0]["text"] for item in body["output"]] == ["one two ", "three four"]
    assert decode_frame(server.replay(response_id, after=seen)[0])["sequence_number"] == seen + 1
    kinds = [decode_frame(frame)["type"] for frame in server.replay(response_id) if frame.startswith(b"event")]
    for once in ("response.created", "response.in_progress", "response.completed"):
        assert kinds.count(once) == 1
    check_log(server, response_id)
    with server.openai().responses.stream(response_id=response_id) as stream:
        assert list(stream)[-1].type == "response.completed"
    with server.openai().responses.stream(response_id=response_id, starting_after=seen) as stream:
        assert next(iter(stream)).sequence_number == seen + 1
        assert stream.get_final_response().output_text == "one two three four"


@pytest.mark.parametrize("form", ["function_call", "mcp_call"])
def test_an_interrupted_unsafe_tool_is_not_run_again(make_server: Callable[..., Server], form: str) -> None:
    server = make_server()
    fields = {"tools": [{"type": "mcp", "server_label": "hermes"}]} if form == "mcp_call" else {}
    response_id = start_and_kill(
        server,
        lambda: effects(server, "unsafe"),
        {"say": "look: "},
        call("effect", text="unsafe", gate="never"),
        **fields,
    )
    body = server.ended(response_id)
    assert body["status"] == "completed"
    assert "outcome" in str(body["output"]) or "not known" in str(body["output"])
    assert effects(server, "unsafe") == 1
    assert tool_calls(server, response_id)[0][1] == "interrupted"
    assert text(body).startswith("look: The result is Interrupted")
    check_log(server, response_id)


def test_an_interrupted_safe_tool_runs_again(make_server: Callable[..., Server]) -> None:
    server = make_server()
    step = call("safe_effect", text="safe", gate="later")
    response_id = start_and_kill(server, lambda: effects(server, "safe"), step)
    eventually(lambda: effects(server, "safe") == 2, what="the second run")
    server.open_gate("later")
    body = server.ended(response_id)
    assert text(body) == "The result is safe."
    assert [item["type"] for item in body["output"]] == ["function_call", "function_call_output", "message"]
    check_log(server, response_id)


def test_the_text_beside_a_call_is_whole_and_counted_once(make_server: Callable[..., Server]) -> None:
    """The round was over when the process died: of its words none were cut off."""
    server = make_server()
    words = "word " * 60
    steps = (call("safe_effect", text="safe", gate="later"), {"say": words})
    response_id = start_and_kill(server, lambda: effects(server, "safe"), *steps, max_output_tokens=100)
    server.open_gate("later")
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("completed", None)
    assert {item["status"] for item in body["output"]} == {"completed"}
    assert text(body) == words + "The result is safe."
    check_log(server, response_id)


@pytest.mark.parametrize("name", ["effect", "_hidden"])
def test_a_finished_call_is_replayed_from_the_ledger(make_server: Callable[..., Server], name: str) -> None:
    """It dies while the model answers to the result of the first call."""
    server = make_server()
    reported = script({"say": "half "}, {"gate": "rest"}, {"say": "whole"})
    response_id = start_and_kill(server, lambda: has_output(server, "'text': 'half '"), call(name, text=reported))
    server.open_gate("rest")
    body = server.ended(response_id)
    assert text(body) == "half whole"
    assert effects(server, reported) == 1
    check_log(server, response_id)


def test_the_crashes_are_counted(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_ATTEMPTS="2")
    response_id = start_and_kill(server, lambda: has_output(server, "x "), {"say": "x "}, {"gate": "never"})
    eventually(lambda: stored_rows(server, "response", "attempt", id=response_id) == [(2,)], what="the second attempt")
    server.kill()
    server.start()
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})
    assert text(body) == "x "
    check_log(server, response_id)


def test_a_stop_is_no_crash(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_ATTEMPTS="1")
    with server.http() as client:
        asked = {"input": script({"say": "x "}, {"gate": "go"}, {"say": "y"}), "background": True}
        response_id: str = client.post("/v1/responses", json=asked).json()["id"]
    eventually(lambda: has_output(server, "x "), what="the first word")
    server.kill(signal.SIGTERM)
    server.start()
    server.open_gate("go")
    assert text(server.ended(response_id)) == "x y"


def test_one_document_is_not_put_together_from_pieces(make_server: Callable[..., Server]) -> None:
    server = make_server()
    schema = {"format": {"type": "json_object"}}
    steps = ({"say": '{"a": '}, {"gate": "never"})
    response_id = start_and_kill(server, lambda: has_output(server, '{"a": '), *steps, text=schema)
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})


def test_usage_covers_every_attempt(make_server: Callable[..., Server]) -> None:
    server = make_server()
    reported = script({"say": "half "}, {"gate": "rest"}, {"say": "whole"})
    response_id = start_and_kill(server, lambda: has_output(server, "'text': 'half '"), call("effect", text=reported))
    server.open_gate("rest")
    usage = server.ended(response_id)["usage"]
    # The call before the kill, the word that the kill cut off by estimate, and the last word after it.
    assert usage["output_tokens"] == 1 + 2 + 1


@pytest.mark.parametrize("env", [{"HERMES_RECOVERY": "incomplete"}, {"HERMES_MAX_ATTEMPTS": "1"}])
def test_usage_is_reported_where_no_model_is_asked_again(
    make_server: Callable[..., Server], env: dict[str, str]
) -> None:
    server = make_server(**env)
    response_id = start_and_kill(server, lambda: effects(server, "x"), call("effect", text="x", gate="never"))
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})
    assert body["usage"]["output_tokens"] == 1
    check_log(server, response_id)


def test_a_cancel_that_came_before_the_kill_is_honoured_without_a_model(make_server: Callable[..., Server]) -> None:
    """The running server does not hear of it: its hints are lost, and its lease is renewed too seldom."""
    server = make_server(TEST_DISPATCHER="tests.support.scripted_provider.DeafDispatcher", HERMES_LEASE_SECS="3600")
    with server.http() as client:
        asked = {"input": script({"say": "unheard "}, call("effect", text="x", gate="never")), "background": True}
        response_id: str = client.post("/v1/responses", json=asked).json()["id"]
        eventually(lambda: effects(server, "x"), what="the call")
        client.post(f"/v1/responses/{response_id}/cancel")
    assert server.body(response_id)["status"] == "in_progress"
    calls = len(server.model_calls("unheard"))
    server.kill()
    server.start()
    body = server.ended(response_id)
    assert (body["status"], body["usage"]["output_tokens"]) == ("cancelled", 2)
    assert len(server.model_calls("unheard")) == calls
