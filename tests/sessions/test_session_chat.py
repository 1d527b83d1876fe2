"""Turns of a session through ``/chat`` and ``/chat/stream``, and forks of it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.hermes_client import (
    all_run_events,
    chat_stream,
    get,
    names,
    post,
    run_status,
    start_run,
)
from tests.support.scripted_requests import call
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.session_client import create_session, read_messages, read_session, send_message


def test_chat_answers_in_one_piece(server: Server) -> None:
    session_id = create_session(server)["id"]
    reply = send_message(server, session_id, {"say": "hello there"})
    assert reply["object"] == "hermes.session.chat.completion"
    assert reply["session_id"] == session_id
    assert reply["message"] == {"role": "assistant", "content": "hello there"}
    assert reply["usage"]["output_tokens"] > 0
    assert reply["runtime"] == {"model": "hermes-agent"}
    assert run_status(server, reply["run_id"])["output"] == "hello there"
    check_log(server, reply["response_id"])


def test_chat_streams_the_events_of_hermes(server: Server) -> None:
    session_id = create_session(server)["id"]
    steps = ({"think": "hm "}, {"say": "I look. "}, call("effect", text="seen"), call("explode"), call("_hidden"))
    received = chat_stream(server, session_id, {"message": script(*steps)})
    kinds = [name for name, _ in received]
    assert kinds[:3] == ["run.started", "message.started", "tool.progress"]
    assert kinds[-3:] == ["assistant.completed", "run.completed", "done"]
    payloads = [data for _, data in received]
    assert [data["seq"] for data in payloads] == list(range(1, len(payloads) + 1))
    run_id = payloads[0]["run_id"]
    assert {(data["session_id"], data["run_id"]) for data in payloads} == {(session_id, run_id)}
    assert all(isinstance(data["ts"], float) for data in payloads)
    assert payloads[0]["user_message"] == {"role": "user", "content": script(*steps)}
    message_id = payloads[1]["message"]["id"]
    assert payloads[1]["message"] == {"id": message_id, "role": "assistant"}
    assert (payloads[2]["tool_name"], payloads[2]["delta"]) == ("_thinking", "hm ")
    tools = [(name, data["tool_name"]) for name, data in received if name.startswith("tool.") and "args" in data]
    assert sorted(tools) == [
        *(("tool.completed", "effect"), ("tool.failed", "explode")),
        *(("tool.started", "effect"), ("tool.started", "explode")),
    ]
    started = next(data for name, data in received if name == "tool.started")
    assert started["args"] == {"text": "seen"}
    assert started["message_id"] == message_id
    completed = payloads[-3]
    deltas = "".join(data["delta"] for name, data in received if name == "assistant.delta")
    assert (completed["content"], completed["completed"], completed["partial"]) == (deltas, True, False)
    roles = [message["role"] for message in payloads[-2]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert run_status(server, run_id)["status"] == "completed"
    assert names(all_run_events(server, run_id))[-1] == "run.completed"


def test_a_failed_turn(server: Server) -> None:
    session_id = create_session(server)["id"]
    received = chat_stream(server, session_id, {"message": script({"fail": "it broke"})})
    assert [name for name, _ in received][-2:] == ["error", "done"]
    assert received[-2][1]["message"] == "it broke"
    refused = post(server, f"/api/sessions/{session_id}/chat", {"message": script({"fail": "it broke"})})
    assert (refused.status_code, refused.headers["x-should-retry"]) == (502, "false")
    assert refused.json()["error"]["message"] == "it broke"
    assert refused.headers["x-hermes-session-id"] == session_id


def test_what_a_failed_turn_says_it_says_again(server: Server) -> None:
    session_id = create_session(server)["id"]
    body = {"message": script({"fail": "it broke"}), "provider": "x"}
    first, again = (
        post(server, f"/api/sessions/{session_id}/chat", body, Idempotency_Key="failed-session-turn") for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (502, 502)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["x-hermes-ignored"] == again.headers["x-hermes-ignored"] == "provider"


@pytest.mark.parametrize("endpoint", ["/v1/responses", "/v1/runs", "/api/sessions/{}/chat"])
def test_headers_mean_the_same_at_every_endpoint(server: Server, endpoint: str) -> None:
    session_id = create_session(server)["id"]
    body = {"input": script({"call": "effect", "arguments": {"text": "endpoint"}})}
    answer = post(server, endpoint.format(session_id), body, X_Hermes_Tool_Items="mcp_call")
    response_id = answer.json().get("response_id") or answer.json()["id"]
    assert "mcp_call" in [item["type"] for item in server.ended(response_id)["output"]]
    bad = post(server, endpoint.format(session_id), body, X_Hermes_Tool_Items="shouted")
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "X-Hermes-Tool-Items")


def test_a_session_header_that_is_not_followed_is_named(server: Server) -> None:
    session_id = create_session(server)["id"]
    chat = f"/api/sessions/{session_id}/chat"
    other = post(server, chat, {"message": "x"}, X_Hermes_Session_Id="another")
    assert other.headers["x-hermes-session-id"] == session_id
    assert other.headers["x-hermes-ignored"] == "X-Hermes-Session-Id"
    assert "x-hermes-ignored" not in post(server, chat, {"message": "x"}, X_Hermes_Session_Id=session_id).headers


def test_a_chat_can_be_stopped_as_a_run(server: Server) -> None:
    session_id = create_session(server)["id"]
    body = {"message": script({"say": "half "}, {"gate": "never"})}
    with server.http() as client, client.stream("POST", f"/api/sessions/{session_id}/chat/stream", json=body) as answer:
        lines = answer.iter_lines()
        first = next(line for line in lines if line.startswith("data: "))
        run_id = first.split('"run_id":"')[1].split('"')[0]
        assert next(line for line in lines if '"delta":"half ' in line)
        assert post(server, f"/v1/runs/{run_id}/stop", {}).json()["status"] == "stopping"
        kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert kinds == ["assistant.completed", "run.completed", "done"]
    assert read_messages(server, session_id)[-1]["finish_reason"] == "cancelled"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_three_turns_are_one_session_and_remember(server: Server, is_streamed: bool) -> None:
    session_id = create_session(server)["id"]
    for word in ("alpha", "beta", "gamma"):
        if is_streamed:
            answer = chat_stream(server, session_id, {"input": word})[-3][1]["content"]
        else:
            answer = send_message(server, session_id, message=word)["message"]["content"]
    assert 'you wrote 2 times, first: "alpha"' in answer
    assert read_session(server, session_id)["turn_count"] == 3
    assert read_session(server, session_id)["message_count"] == 6


@pytest.mark.parametrize("is_streamed", [False, True])
def test_three_chained_runs_are_one_session(server: Server, is_streamed: bool) -> None:
    previous: dict[str, str] = {}
    sessions = set()
    for word in ("alpha", "beta", "gamma"):
        run_id = start_run(server, {"input": word, **previous})
        if is_streamed:
            all_run_events(server, run_id)
        previous = {"previous_response_id": f"resp_{run_id[4:]}"}
        sessions.add(run_status(server, run_id)["session_id"])
    assert len(sessions) == 1
    assert 'you wrote 2 times, first: "alpha"' in text(server.ended(previous["previous_response_id"]))


def test_which_session_a_run_joins(server: Server) -> None:
    def session_of(body: dict[str, Any], **headers: str) -> tuple[str, str]:
        answer = post(server, "/v1/runs", {"input": "which", **body}, **headers)
        assert answer.status_code == 202, answer.text
        return answer.json()["session_id"], answer.json()["response_id"]

    by_body, first = session_of({"session_id": "run-body"}, X_Hermes_Session_Id="run-header")
    assert by_body == "run-body"
    assert session_of({}, X_Hermes_Session_Id="run-header")[0] == "run-header"
    chain = {"previous_response_id": first}
    assert session_of(chain, X_Hermes_Session_Id="run-header")[0] == "run-body"
    elsewhere, last = session_of({**chain, "session_id": "run-elsewhere"})
    assert elsewhere == "run-elsewhere"
    assert 'you wrote 1 times, first: "which"' in text(server.ended(last))
    assert len(read_messages(server, "run-elsewhere")) == 4
    assert session_of({})[0] not in ("run-body", "run-header", "run-elsewhere")


def test_history_in_the_body_comes_before_all_other(server: Server) -> None:
    session_id = create_session(server)["id"]
    send_message(server, session_id, message="not this")
    history = [{"role": "user", "content": "older"}, {"role": "assistant", "content": "answered"}]
    body = {"input": [{"content": "history-marker"}], "conversation_history": history, "session_id": session_id}
    run_id = start_run(server, body)
    server.ended(f"resp_{run_id[4:]}")
    assert server.model_calls("history-marker")[0]["texts"] == ["older", "answered", "history-marker"]
    send_message(server, session_id, message="after-marker")
    assert server.model_calls("after-marker")[0]["texts"][:2] == ["older", "answered"]


def test_a_fork_goes_on_from_any_turn(server: Server) -> None:
    session_id = create_session(server)["id"]
    first = send_message(server, session_id, message="fork-alpha")
    send_message(server, session_id, message="fork-beta")
    answer = post(server, f"/api/sessions/{session_id}/fork", {"title": "a fork", "response_id": first["response_id"]})
    assert answer.status_code == 201
    fork = answer.json()["session"]
    assert (fork["parent_session_id"], fork["title"], fork["message_count"]) == (session_id, "a fork", 2)
    assert fork["preview"] == "fork-alpha"
    parent = read_session(server, session_id)
    assert (parent["end_reason"], parent["message_count"]) == ("branched", 4)
    send_message(server, fork["id"], message="fork-gamma")
    asked = server.model_calls("fork-gamma")[0]["texts"]
    assert (asked[0], asked[-1], len(asked)) == ("fork-alpha", "fork-gamma", 3)
    users = [message["content"] for message in read_messages(server, fork["id"]) if message["role"] == "user"]
    assert users == ["fork-alpha", "fork-gamma"]
    whole = post(server, f"/api/sessions/{session_id}/fork", {}).json()["session"]
    assert whole["message_count"] == 4
    for body, status, code in (
        ({"id": session_id}, 409, "session_exists"),
        ({"response_id": "resp_unknown"}, 404, "response_not_found"),
        ({"title": 3}, 400, "invalid_title"),
    ):
        refused = post(server, f"/api/sessions/{session_id}/fork", body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)


def test_forks_of_cancelled_and_running_turns(server: Server) -> None:
    session_id = create_session(server)["id"]
    cut = start_run(server, {"input": script({"say": "half a "}, {"gate": "never"}), "session_id": session_id})
    eventually(lambda: run_status(server, cut)["output"] == "half a ")
    post(server, f"/v1/runs/{cut}/stop", {})
    server.ended(f"resp_{cut[4:]}")
    fork = post(server, f"/api/sessions/{session_id}/fork", {"response_id": cut}).json()["session"]
    send_message(server, fork["id"], message="behind-the-cut")
    assert "half a " in server.model_calls("behind-the-cut")[0]["texts"]
    gated = script({"gate": "fork-running"}, {"say": "sent at last"})
    running = start_run(server, {"input": gated, "session_id": session_id})
    second = post(server, f"/api/sessions/{session_id}/fork", {"response_id": running}).json()["session"]
    waiting = start_run(server, {"input": "behind-the-running", "session_id": second["id"]})
    assert run_status(server, waiting)["status"] == "queued"
    server.open_gate("fork-running")
    server.ended(f"resp_{waiting[4:]}")
    assert "sent at last" in server.model_calls("behind-the-running")[0]["texts"]


def test_a_fork_of_a_crashed_turn(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_RECOVERY="incomplete")
    session_id = create_session(server)["id"]
    run_id = start_run(server, {"input": script({"say": "lost "}, {"gate": "never"}), "session_id": session_id})
    eventually(lambda: run_status(server, run_id)["output"] == "lost ")
    server.kill()
    server.start()
    assert server.ended(f"resp_{run_id[4:]}")["status"] == "incomplete"
    fork = post(server, f"/api/sessions/{session_id}/fork", {"response_id": run_id}).json()["session"]
    send_message(server, fork["id"], message="behind-the-crash")
    assert "lost " in server.model_calls("behind-the-crash")[0]["texts"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "message"),
        ({"message": 3}, "message"),
        ({"message": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}, "message[0].content[0].image_url"),
        ({"message": "a", "input": "b"}, "message"),
        ({"message": "a", "system_message": 3}, "system_message"),
        ({"message": "a", "store": False}, "store"),
        ({"message": "a", "conversation": "c"}, "conversation"),
        ({"message": "a", "previous_response_id": "resp_x"}, "previous_response_id"),
    ],
)
def test_bad_chats_are_named(server: Server, body: dict[str, Any], param: str) -> None:
    session_id = create_session(server)["id"]
    for path in ("chat", "chat/stream"):
        refused = post(server, f"/api/sessions/{session_id}/{path}", body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert get(server, "/api/sessions/unknown").json()["error"]["code"] == "session_not_found"


def test_a_session_has_a_model_of_its_own(server: Server) -> None:
    session_id = create_session(server)["id"]
    locked = post(server, f"/api/sessions/{session_id}/model", {"model": "default"})
    assert locked.json() == {
        "object": "hermes.session.model_lock",
        "session_id": session_id,
        "runtime": {"model": "hermes-agent"},
    }
    assert send_message(server, session_id)["runtime"] == {"model": "hermes-agent"}
    assert read_session(server, session_id)["has_model_config"] is True
