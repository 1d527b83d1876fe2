"""Calls that the client decides: the turn ends with a request, and the next turn brings the answer."""

from typing import Any

import httpx
import pytest

from tests.support.checker import check_log
from tests.support.people import create_key
from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script, text
from tests.support.stored_rows import ENDED_LONG_AGO, stored_rows, update_rows

MCP_FORM = {"X-Hermes-Tool-Items": "mcp_call"}


def post(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def asked(client: httpx.Client, *steps: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    body = post(client, input=script(*steps), **fields)
    request = body["output"][-1]
    assert (body["status"], request["type"]) == ("completed", "mcp_approval_request")
    return body, request


def answer(request: dict[str, Any], *, approve: bool, **fields: Any) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve, **fields}


def test_a_turn_ends_with_the_request_and_the_next_one_runs_the_call(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, {"say": "may I? "}, call("client_guarded", text="by item"))
        assert (request["server_label"], request["name"]) == ("hermes", "client_guarded")
        assert request["arguments"] == '{"text":"by item"}'
        assert effects(server, "by item") == 0
        second = post(client, input=[answer(request, approve=True)], previous_response_id=first["id"])
    run = second["output"][0]
    assert (run["type"], run["approval_request_id"], run["output"]) == ("mcp_call", request["id"], "by item")
    assert text(second) == "The result is by item."
    assert effects(server, "by item") == 1
    for body in (first, second):
        check_log(server, body["id"])
    with server.http() as client:
        third = post(client, input=script({"say": "on"}), previous_response_id=second["id"])
    assert text(third) == "on"
    seen = server.model_calls('{"say": "on"}')[0]["texts"]
    assert seen.count("by item") == 1  # the model sees one call with one output


def test_a_denial_is_what_the_model_reads(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="refused"))
        reply = answer(request, approve=False, reason="Too risky.")
        second = post(client, input=[reply], previous_response_id=first["id"])
    assert [item["type"] for item in second["output"]] == ["message"]
    assert "Denied" in text(second)
    assert "Too risky." in text(second)
    assert effects(server, "refused") == 0
    assert stored_rows(server, "toolevent", "status", response_id=first["id"]) == [("denied",)]


def test_an_answer_counts_once_however_often_it_is_sent(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="counts once"))
        reply = [answer(request, approve=True)]
        post(client, input=reply, previous_response_id=first["id"])
        again = post(client, input=reply, previous_response_id=first["id"])
    assert effects(server, "counts once") == 1
    assert text(again) == "The result is counts once."


def test_a_denial_of_a_call_that_ran_is_too_late(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="ran before"))
        post(client, input=[answer(request, approve=True)], previous_response_id=first["id"])
        late = post(client, input=[answer(request, approve=False)], previous_response_id=first["id"])
    assert text(late) == "The result is ran before."
    assert effects(server, "ran before") == 1


def test_an_answer_after_its_time_decides_nothing(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="too late"))
        update_rows(server, "toolevent", {"expires_at": ENDED_LONG_AGO}, response_id=first["id"])
        second = post(client, input=[answer(request, approve=True)], previous_response_id=first["id"])
    assert "not approved" in text(second)
    assert effects(server, "too late") == 0


def test_a_turn_without_an_answer_goes_on_without_the_call(server: Server) -> None:
    with server.http() as client:
        first, _ = asked(client, call("client_guarded", text="forgotten"))
        second = post(client, input=script({"say": "well"}), previous_response_id=first["id"])
    assert text(second) == "well"
    assert effects(server, "forgotten") == 0


def test_a_client_may_send_the_history_itself(server: Server) -> None:
    question = {"role": "user", "content": script(call("client_guarded", text="resent"))}
    with server.http() as client:
        _, request = asked(client, call("client_guarded", text="resent"))
        body = post(client, input=[question, request, answer(request, approve=True)])
        assert body["output"][0]["approval_request_id"] == request["id"]
        whole = [question, request, answer(request, approve=True), *body["output"]]
        last = post(client, input=[*whole, {"role": "user", "content": script({"say": "done"})}])
    assert text(last) == "done"
    assert effects(server, "resent") == 1


def test_a_turn_that_is_not_stored_can_ask_too(server: Server) -> None:
    question = {"role": "user", "content": script(call("client_guarded", text="unstored ask"))}
    with server.http() as client:
        first = post(client, input=[question], store=False)
        request = first["output"][-1]
        history = [question, request, answer(request, approve=True)]
        second = post(client, input=history, store=False)
        post(client, input=history, store=False)  # a repeated approval
    assert second["output"][0]["output"] == "unstored ask"
    assert effects(server, "unstored ask") == 1
    assert stored_rows(server, "toolevent", "arguments", response_id=first["id"]) == [("",)]


def altered_refusal(client: httpx.Client, items: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    refused = client.post("/v1/responses", json={"input": items, **fields})
    assert refused.status_code == 400, refused.text
    error: dict[str, Any] = refused.json()["error"]
    return error


@pytest.mark.parametrize("is_stored", [True, False])
def test_an_approval_of_an_altered_request_is_refused(server: Server, is_stored: bool) -> None:
    original = f"asked about {is_stored}"
    question = {"role": "user", "content": script(call("client_guarded", text=original))}
    with server.http() as client:
        request = post(client, input=[question], store=is_stored)["output"][-1]
        altered = request | {"arguments": '{"text":"never asked about"}'}
        renamed = request | {"name": "effect"}
        for changed in (altered, renamed):
            items = [question, changed, answer(request, approve=True)]
            error = altered_refusal(client, items, store=is_stored)
            assert error["param"] == "input[1]"
            assert "was altered" in error["message"]
        twice = [question, request, altered, answer(request, approve=True)]
        assert altered_refusal(client, twice, store=is_stored)["param"] == "input[2]"
        body = post(client, input=[question, request, answer(request, approve=True)], store=is_stored)
    assert body["output"][0]["output"] == original  # the refusals decided nothing
    assert effects(server, "never asked about") == 0


def test_the_proof_in_a_request_is_no_use_for_another_request(server: Server) -> None:
    with server.http() as client:
        mine, other = (
            post(client, input=script(call("client_guarded", text=name)), store=False)["output"][-1]
            for name in ("proof of mine", "proof of another")
        )
        forged_id = mine["id"][:42] + other["id"][42:]
        forged = mine | {"id": forged_id, "arguments": other["arguments"]}
        for proof_id in (forged_id, mine["id"][:42]):
            items = [forged | {"id": proof_id}, {**answer(mine, approve=True), "approval_request_id": proof_id}]
            error = altered_refusal(client, items, store=False)
            assert error["param"] == "input[1].approval_request_id"
    assert effects(server, "proof of another") == 0


def test_a_request_that_was_altered_in_a_conversation_is_not_carried_out(server: Server) -> None:
    with server.http() as client:
        request = post(client, input=script(call("client_guarded", text="first words")), store=False)["output"][-1]
        conversation = client.post("/v1/conversations", json={}).json()["id"]
        altered = request | {"arguments": '{"text":"other words"}'}
        added = client.post(f"/v1/conversations/{conversation}/items", json={"items": [altered]})
        assert added.status_code == 200, added.text
        body = post(client, input=[answer(request, approve=True)], conversation=conversation)
    assert "was altered" in text(body)
    assert effects(server, "other words") == 0


def test_a_request_that_is_sent_twice_is_one_call(server: Server) -> None:
    question = {"role": "user", "content": script(call("client_guarded", text="sent twice"))}
    with server.http() as client:
        request = post(client, input=[question], store=False)["output"][-1]
        copies = [question, request, request]
        body = post(client, input=[*copies, answer(request, approve=True)], store=False)
    assert [item["type"] for item in body["output"]] == ["mcp_call", "message"]
    assert effects(server, "sent twice") == 1


def test_two_answers_to_one_request_are_refused(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="yes and no"))
        both = [answer(request, approve=False), answer(request, approve=True)]
        refused = client.post("/v1/responses", json={"input": both, "previous_response_id": first["id"]})
        error = refused.json()["error"]
        assert (refused.status_code, error["param"]) == (400, "input[1].approval_request_id"), refused.text
        second = post(client, input=both[1:], previous_response_id=first["id"])
    assert second["output"][0]["output"] == "yes and no"


def test_our_own_endpoint_answers_as_well(server: Server) -> None:
    with server.http() as client:
        first, request = asked(client, call("client_guarded", text="by endpoint"))
        [pending] = client.get(f"/v1/responses/{first['id']}/approval").json()["pending"]
        assert pending["request_id"] == request["id"]
        decided = client.post(f"/v1/responses/{first['id']}/approval", json={"choice": "session"})
        assert decided.status_code == 200, decided.text
        second = post(client, input="go on", previous_response_id=first["id"])
        assert second["output"][0]["output"] == "by endpoint"
        repeated = script(call("client_guarded", text="by endpoint"))
        third = post(client, input=repeated, previous_response_id=second["id"])  # allowed for the session
    assert [item["type"] for item in third["output"]] == ["function_call", "function_call_output", "message"]
    assert effects(server, "by endpoint") == 2
    check_log(server, third["id"])


def test_several_requests_are_answered_together_and_run_in_order(server: Server) -> None:
    steps = (call("client_guarded", text="uno"), call("effect", text="due"), call("client_guarded", text="tre"))
    with server.http() as client:
        first = post(client, input=script(*steps))
        requests = [item for item in first["output"] if item["type"] == "mcp_approval_request"]
        [skipped] = [item for item in first["output"] if item["type"] == "function_call_output"]
        assert skipped["output"].startswith("Not carried out")
        answers = [answer(request, approve=True) for request in requests]
        post(client, input=answers, previous_response_id=first["id"])
    traces = (server.home / "effects.txt").read_text().splitlines()
    assert [trace for trace in traces if trace in ("uno", "due", "tre")] == ["uno", "tre"]
    check_log(server, first["id"])


def test_only_the_owner_can_answer_and_unknown_requests_are_named(server: Server) -> None:
    with server.http() as client, server.http(create_key(server, "stranger")) as stranger:
        _, request = asked(client, call("client_guarded", text="not theirs"))
        for own, items in (
            (stranger, [request, answer(request, approve=True)]),
            (client, [{**answer(request, approve=True), "approval_request_id": f"mcpr_{'0' * 32}o0000"}]),
        ):
            refused = own.post("/v1/responses", json={"input": items})
            error = refused.json()["error"]
            expected = f"input[{len(items) - 1}].approval_request_id"
            assert (refused.status_code, error["param"]) == (400, expected), refused.text
        wrong = client.post("/v1/responses", json={"input": [{**answer(request, approve=True), "approve": "yes"}]})
    assert wrong.json()["error"]["param"] == "input[0].approve"
    assert effects(server, "not theirs") == 0


def test_the_events_of_a_request_are_those_of_an_item(server: Server) -> None:
    with server.http() as client:
        steps = script(call("client_guarded", text="streamed"))
        stream = client.post("/v1/responses", json={"input": steps, "stream": True}, headers=MCP_FORM)
    assert "response.mcp_call" not in stream.text
    assert stream.text.count("event: response.output_item.added") == 1
    assert stream.text.count("event: response.output_item.done") == 1


def test_a_chat_is_denied_at_once_and_says_what_to_do(server: Server) -> None:
    asked_in_chat = {"messages": [{"role": "user", "content": script(call("client_guarded", text="in chat"))}]}
    with server.http() as client:
        first = client.post("/v1/chat/completions", json=asked_in_chat).json()["choices"][0]["message"]["content"]
        operators = {"messages": [{"role": "user", "content": script(call("guarded", text="in chat"))}]}
        too = client.post("/v1/chat/completions", json=operators).json()["choices"][0]["message"]["content"]
    for message in (first, too):
        assert "needs an approval" in message
        assert "approval_wait" in message
    assert effects(server, "in chat") == 0
