"""Approvals and waits as operators see them: what was granted, what a turn waits for, what it repeats."""

import re

from tests.support.approvals import decide, until_waiting
from tests.support.scripted_requests import call, start_background
from tests.support.server import Server, script
from tests.support.staff import RESPONSES, Operator, response_page
from tests.support.stored_rows import admin_history, stored_rows

GRANTS = "/admin/responses_app/approvalgrant/"


def waiting_call(server: Server, text: str) -> str:
    response_id = start_background(server, call("guarded", text=text))
    until_waiting(server, response_id)
    return response_id


def event_of(server: Server, response_id: str) -> str:
    [(event_id,)] = stored_rows(server, "toolevent", "id", response_id=response_id)
    return str(event_id)


def test_a_grant_shows_tool_arguments_and_its_end_until_the_content_is_deleted(
    server: Server, operator: Operator
) -> None:
    response_id = waiting_call(server, "granted words")
    decide(server, response_id, "always")
    server.ended(response_id)
    [(grant_id,)] = stored_rows(server, "approvalgrant", "id", call_id=event_of(server, response_id))
    for path in (GRANTS, f"{GRANTS}{grant_id}/change/"):
        page = operator.page(path)
        assert "guarded" in page
        assert "granted words" in page
        assert "key root" in page
        assert "it is withdrawn" in page
    server.openai().responses.delete(response_id)
    assert "granted words" not in operator.page(GRANTS)
    assert "deleted with their response" in operator.page(GRANTS)


def test_the_list_of_waiting_calls_shows_how_their_arguments_begin(server: Server, operator: Operator) -> None:
    words = "rm -rf \u202e" + "many " * 50
    response_id = waiting_call(server, words)
    page = operator.page("/admin/responses_app/toolevent/?waits=yes")
    assert "rm -rf \\u202emany many" in page
    assert "\u202e" not in page
    assert "many " * 20 not in page
    decide(server, response_id, "deny")


def test_every_decision_is_in_the_audit_log(server: Server, operator: Operator) -> None:
    decided = {}
    for choice, entry in (("once", "Allowed once"), ("deny", "Denied"), ("session", "Allowed for its session")):
        decided[waiting_call(server, f"audited {choice}")] = (choice, entry)
    for response_id, (choice, _) in decided.items():
        decide(server, response_id, choice)
    for response_id, (_, entry) in decided.items():
        event_id = event_of(server, response_id)
        assert admin_history(server, event_id, "toolevent") == [("admin", f"{entry} by key root.")]
    by_operator = waiting_call(server, "audited in the admin")
    event_id = event_of(server, by_operator)
    operator.act("/admin/responses_app/toolevent/", "allow_once", event_id)
    assert admin_history(server, event_id, "toolevent") == [("admin", "Allowed once by operator admin.")]
    assert "Allowed once by operator admin." in operator.page(f"/admin/responses_app/toolevent/{event_id}/history/")


def test_a_turn_shows_what_it_waits_for(server: Server, operator: Operator) -> None:
    first = waiting_call(server, "asked first")
    with server.http() as client:
        body = {"input": "then this", "previous_response_id": first, "background": True}
        second = client.post("/v1/responses", json=body).json()["id"]
    page = operator.page(response_page(first))
    assert re.search(r"waits for the approval of guarded, until <time datetime=\"20", page)
    page = operator.page(response_page(second))
    assert f'waits for turn 1 of its session, <a href="{response_page(first)}">' in page
    now = operator.page("/dashboard/now")
    assert "waits for the approval of guarded" in now
    assert f'waits for turn 1 of its session <a href="/live/{first}">' in now
    [(expires_at,)] = stored_rows(server, "toolevent", "expires_at", response_id=first)
    assert str(expires_at)[:19].replace("T", " ") in now
    decide(server, first, "deny")
    server.ended(second)
    assert "waits for" not in operator.page(response_page(second))


def test_a_retry_and_its_original_link_to_each_other(server: Server, operator: Operator) -> None:
    original = server.openai().responses.create(input=script({"fail": "out"})).id
    operator.act(RESPONSES, "retry", original)
    [(again,)] = stored_rows(server, "response", "id", retry_of=original)
    server.ended(again)
    assert f'tries <a href="{response_page(original)}">' in operator.page(response_page(again))
    assert f'tried again as <a href="{response_page(again)}">' in operator.page(response_page(original))
