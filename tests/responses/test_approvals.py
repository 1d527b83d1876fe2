"""Calls that wait for consent: without a slot, over restarts, and not for ever."""

from collections.abc import Callable

from tests.support.approvals import decide, until_parked, until_waiting
from tests.support.checker import check_log
from tests.support.scripted_requests import call, effects, start_background
from tests.support.server import (
    Server,
    script,
    text,
)
from tests.support.stored_rows import tool_calls


def test_a_call_runs_after_consent(server: Server) -> None:
    response_id = start_background(server, {"say": "may I? "}, call("guarded", text="consented"))
    [asked] = until_waiting(server, response_id)
    assert (asked["tool"], asked["arguments"]) == ("guarded", '{"text":"consented"}')
    assert asked["reason"] == "the test wants to be asked"
    assert server.body(response_id)["status"] == "in_progress"
    assert effects(server, "consented") == 0
    assert decide(server, response_id, "once").json()["resolved"] == 1
    body = server.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "may I? The result is consented.")
    assert effects(server, "consented") == 1
    check_log(server, response_id)


def test_a_denial_is_a_result(server: Server) -> None:
    response_id = start_background(server, call("guarded", text="denied"))
    until_waiting(server, response_id)
    assert decide(server, response_id, "deny").status_code == 200
    body = server.ended(response_id)
    assert body["status"] == "completed"
    assert body["output"][1]["output"].startswith("Denied")
    assert effects(server, "denied") == 0
    assert tool_calls(server, response_id)[0][1] == "denied"


def test_it_waits_without_a_lease_and_other_work_goes_on(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="1")
    response_id = start_background(server, call("guarded", text="slot"))
    until_parked(server, response_id)
    other = server.openai().responses.create(model="hermes-agent", input="hello")
    assert other.status == "completed"
    decide(server, response_id, "once")
    assert server.ended(response_id)["status"] == "completed"


def test_the_wait_survives_a_kill_and_costs_no_attempt(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_ATTEMPTS="1")
    response_id = start_background(server, {"say": "before "}, call("guarded", text="after a kill"))
    until_parked(server, response_id)
    server.kill()
    server.start()
    until_waiting(server, response_id)
    decide(server, response_id, "once")
    body = server.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "before The result is after a kill.")
    assert effects(server, "after a kill") == 1
    check_log(server, response_id)


def test_without_a_decision_in_time_the_call_is_denied(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_APPROVAL_TIMEOUT="1")
    response_id = start_background(server, call("guarded", text="too late"))
    body = server.ended(response_id)
    assert body["status"] == "completed"
    assert "not allowed in time" in body["output"][1]["output"]
    assert effects(server, "too late") == 0
    assert decide(server, response_id, "once").status_code == 409


def test_consent_lasts_for_the_session_or_always_and_for_the_same_arguments(server: Server) -> None:
    first = start_background(server, call("guarded", text="lasting"))
    until_waiting(server, first)
    decide(server, first, "session")
    server.ended(first)
    again = start_background(server, call("guarded", text="lasting"), previous_response_id=first)
    assert server.ended(again)["status"] == "completed"
    assert effects(server, "lasting") == 2
    other = start_background(server, call("guarded", text="lasting."), previous_response_id=again)
    until_waiting(server, other)
    decide(server, other, "deny")
    elsewhere = start_background(server, call("guarded", text="lasting"))
    until_waiting(server, elsewhere)
    decide(server, elsewhere, "always")
    server.ended(elsewhere)
    assert server.ended(start_background(server, call("guarded", text="lasting")))["status"] == "completed"
    assert effects(server, "lasting") == 4


def test_calls_behind_one_that_waits_ask_at_once_and_run_in_their_order(server: Server) -> None:
    response_id = start_background(
        server, call("guarded", text="first"), call("effect", text="free"), call("guarded", text="2nd")
    )
    first, second = until_waiting(server, response_id, 2)
    decide(server, response_id, "once", request_id=second["request_id"])
    until_parked(server, response_id)
    assert (effects(server, "first"), effects(server, "2nd"), effects(server, "free")) == (0, 0, 0)
    decide(server, response_id, "once", request_id=first["request_id"])
    body = server.ended(response_id)
    traces = (server.home / "effects.txt").read_text().splitlines()
    assert [trace for trace in traces if trace in ("first", "free", "2nd")] == ["first", "free", "2nd"]
    assert [item["type"] for item in body["output"]].count("function_call_output") == 3
    check_log(server, response_id)


def test_all_at_once(server: Server) -> None:
    response_id = start_background(server, call("guarded", text="all one"), call("guarded", text="all two"))
    until_waiting(server, response_id, 2)
    assert decide(server, response_id, "allow", all=True).json()["resolved"] == 2
    server.ended(response_id)
    assert (effects(server, "all one"), effects(server, "all two")) == (1, 1)


def test_a_wait_can_be_cancelled(server: Server) -> None:
    response_id = start_background(server, call("guarded", text="cancelled"))
    until_waiting(server, response_id)
    with server.http() as client:
        body = client.post(f"/v1/responses/{response_id}/cancel").json()
    assert body["status"] == "cancelled"
    assert decide(server, response_id, "once").status_code == 409
    assert effects(server, "cancelled") == 0
    check_log(server, response_id)


def test_what_is_not_stored_cannot_wait(server: Server) -> None:
    with server.http() as client:
        asked = {"input": script(call("guarded", text="unstored")), "store": False}
        body = client.post("/v1/responses", json=asked).json()
    assert "can't wait for" in body["output"][1]["output"]
    assert effects(server, "unstored") == 0


def test_bad_decisions_are_named(server: Server, other_tenant: str) -> None:
    response_id = start_background(server, call("guarded", text="bad"))
    until_waiting(server, response_id)
    for fields, param in (({"choice": "maybe"}, "choice"), ({}, "choice"), ({"choice": "once", "all": 3}, "all")):
        with server.http() as client:
            refused = client.post(f"/v1/responses/{response_id}/approval", json=fields)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    missing = decide(server, response_id, "once", request_id="call_unknown")
    assert missing.status_code == 409
    assert missing.headers["x-should-retry"] == "false"
    with server.http(other_tenant) as client:
        assert client.get(f"/v1/responses/{response_id}/approval").status_code == 404
        assert client.post(f"/v1/responses/{response_id}/approval", json={"choice": "once"}).status_code == 404
        assert client.post(f"/v1/runs/run_{response_id[5:]}/approval", json={"choice": "once"}).status_code == 404
    with server.http() as client:
        reply = client.post(f"/v1/runs/run_{response_id[5:]}/approval", json={"choice": "deny"}).json()
    assert reply["object"] == "hermes.run.approval_response"
    server.ended(response_id)
