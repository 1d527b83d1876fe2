"""What operators do: each action is a service's, names the operator, and reports what it skipped."""

import re
from typing import Any

import httpx
import orjson

from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.staff import (
    RESPONSES,
    SESSIONS,
    Operator,
    logged_in,
    page_messages,
    response_page,
    session_page,
)
from tests.support.stored_rows import admin_history, stored_rows

KEYS = "/admin/responses_app/apikey/"


def create(server: Server, asked: str, session: str | None = None, **more: Any) -> str:
    headers = {"X-Hermes-Session-Id": session} if session else {}
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": asked, **more}, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])


def test_cancel_ends_what_runs_and_skips_what_has_ended(server: Server, operator: Operator) -> None:
    ended = create(server, "quick")
    running = create(server, script({"say": "kept "}, {"gate": "never-opened"}), background=True)
    page = operator.act(RESPONSES, "cancel", running, ended)
    assert "1 cancelled." in page_messages(page)
    assert "1 skipped." in page_messages(page)
    assert ended in page_messages(page)
    assert server.ended(running)["status"] == "cancelled"
    assert admin_history(server, running) == [("admin", "Cancellation requested.")]
    assert admin_history(server, ended) == []


def test_a_button_on_the_page_acts_and_comes_back(server: Server, operator: Operator) -> None:
    running = create(server, script({"gate": "never-opened"}), background=True)
    assert 'value="cancel"' in operator.page(response_page(running))
    answer = operator.act(RESPONSES, "cancel", running, _back=running)
    assert str(answer.url).endswith(response_page(running))
    assert server.ended(running)["status"] == "cancelled"


def test_retry_asks_the_same_again_behind_the_same_history(server: Server, operator: Operator) -> None:
    create(server, "what came before", "retried")
    failed = create(server, script({"fail": "not now"}), "retried", instructions="be kind", metadata={"a": "b"})
    page = operator.act(RESPONSES, "retry", failed)
    found = re.search(r"1 tried again\. New: <a [^>]+>(resp_\w+)</a>\.", page_messages(page))
    assert found is not None, page_messages(page)
    again = server.ended(found[1])
    assert again["status"] == "failed"
    assert (again["instructions"], again["metadata"]) == ("be kind", {"a": "b"})
    rows = stored_rows(server, "response", "id", "previous_id", "session_id", "owner_id", order_by="turn")
    place = {row[0]: row[1:] for row in rows}
    assert place[found[1]] == place[failed]
    calls = server.model_calls("not now")
    assert [call["texts"] for call in calls if call["event"] == "started"][-1] == calls[0]["texts"]
    assert admin_history(server, failed) == [("admin", f"Tried again as {found[1]}.")]


def test_retry_skips_what_can_not_be_asked_again(server: Server, operator: Operator) -> None:
    conversation = create(server, "hello", conversation="no-retry")
    unstored = create(server, "hello", store=False)
    deleted = create(server, "hello")
    server.openai().responses.delete(deleted)
    page = operator.act(RESPONSES, "retry", conversation, unstored, deleted)
    assert "3 skipped." in page_messages(page)


def test_a_fork_continues_behind_its_turn_and_leaves_the_session_alone(server: Server, operator: Operator) -> None:
    first = create(server, "the first turn", "forked")
    create(server, "the second turn", "forked")
    page = operator.act(RESPONSES, "fork", first)
    found = re.search(r"New session: <a [^>]+>(sess_\w+)</a>\.", page_messages(page))
    assert found is not None
    after = create(server, "the other second turn", found[1])
    asked = server.model_calls("the other second turn")[0]["texts"]
    assert "the first turn" in asked
    assert "the second turn" not in asked
    assert f'forked as <a href="{session_page(operator, found[1])}">' in operator.page(response_page(first))
    assert session_page(operator, "forked") in operator.page(session_page(operator, found[1]))
    assert stored_rows(server, "response", "previous_id", id=after) == [(first,)]
    newest = operator.act(SESSIONS, "fork", re.findall(r"\d+", session_page(operator, "forked"))[0])
    assert "1 forked." in page_messages(newest)


def test_delete_asks_first_and_erases_then(server: Server, operator: Operator) -> None:
    response_id = create(server, "a secret plan")
    page = operator.act(RESPONSES, "erase", response_id)
    assert "can't be restored" in page.text
    assert server.body(response_id)["status"] == "completed"
    page = operator.act(RESPONSES, "erase", response_id, confirmed="1")
    assert "1 deleted." in page_messages(page)
    with server.http() as client:
        assert client.get(f"/v1/responses/{response_id}").status_code == 404
    assert "a secret plan" not in operator.page(response_page(response_id))
    assert admin_history(server, response_id) == [("admin", "Content deleted.")]
    assert "1 skipped." in page_messages(operator.act(RESPONSES, "erase", response_id, confirmed="1"))


def test_a_session_with_a_title_is_forked_too(server: Server, operator: Operator) -> None:
    response_id = create(server, "titled", "with-a-title")
    with server.http() as client:
        assert client.patch("/api/sessions/with-a-title", json={"title": "One of a kind"}).status_code == 200
    assert "1 forked." in page_messages(operator.act(RESPONSES, "fork", response_id))


def exported(answer: httpx.Response) -> list[dict[str, Any]]:
    """The records but for when they were read last, which is written a moment later."""
    records = [orjson.loads(line) for line in answer.content.splitlines()]
    for record in records:
        del record["response"]["accessed_at"]
    return records


def test_export_of_the_selected_is_whole_records(server: Server, operator: Operator) -> None:
    ids = [create(server, f"exported {number}", "exported") for number in range(2)]
    answer = operator.act(RESPONSES, "export", *ids)
    assert "attachment" in answer.headers["content-disposition"]
    records = exported(answer)
    assert [record["response"]["id"] for record in records] == ids
    assert records[1]["previous"] == ids[0]
    session = re.findall(r"\d+", session_page(operator, "exported"))[0]
    assert exported(operator.act(SESSIONS, "export", session)) == records


def test_a_new_key_works_and_its_secret_is_shown_once(server: Server, operator: Operator) -> None:
    page = operator.post(f"{KEYS}add/", name="made by hand", owner="1")
    secret = re.search(r'hs-secret">(hs-[\w-]+)<', page.text)
    assert secret is not None, page.text
    assert "no-store" in page.headers["cache-control"]
    assert secret[1] not in str(operator.client.cookies.jar)
    assert text(server.openai(secret[1]).responses.create(input="hi").to_dict())
    key = re.findall(rf"{KEYS}(\d+)/change/", operator.page(KEYS, q="made by hand"))[0]
    assert secret[1] not in operator.page(f"{KEYS}{key}/change/")
    assert "1 revoked." in page_messages(operator.act(KEYS, "revoke", key))
    with server.http(secret[1]) as client:
        assert client.get("/v1/models").status_code == 401
    assert "1 skipped" in page_messages(operator.act(KEYS, "revoke", key))
    assert admin_history(server, key, "apikey")[-1] == ("admin", "Revoked.")
    operator.post(f"{KEYS}{key}/change/", name="renamed", owner="1")
    assert "renamed" in operator.page(KEYS)


def test_staff_who_may_only_look_see_no_actions(server: Server, operator: Operator) -> None:
    made = operator.post(
        "/admin/auth/user/add/",
        username="looks-only",
        usable_password="true",
        password1="look-only-12345",
        password2="look-only-12345",
    )
    user = re.findall(r"/admin/auth/user/(\d+)/", str(made.url))[0]
    granted: list[str] = []
    for codename in ("view_response", "view_session"):
        granted += [str(permission) for (permission,) in stored_rows(server, "permission", "id", codename=codename)]
    dates = {"date_joined_0": "2030-01-01", "date_joined_1": "00:00:00"}
    changed = operator.post(
        f"/admin/auth/user/{user}/change/",
        username="looks-only",
        is_active="on",
        is_staff="on",
        user_permissions=granted,
        **dates,
    )
    assert changed.status_code == 200
    running = create(server, script({"gate": "viewer-gate"}), background=True)
    with logged_in(server, "looks-only", "look-only-12345") as viewer:
        page = viewer.page(response_page(running))
        assert 'value="cancel"' not in page
        assert 'value="erase"' not in page
        assert viewer.client.get(KEYS).status_code == 403
        refused = viewer.post(RESPONSES, at=response_page(running), action="cancel", _selected_action=running)
        assert "cancelled." not in page_messages(refused)
    assert server.body(running)["status"] in ("queued", "in_progress")
    server.open_gate("viewer-gate")
    server.ended(running)


def test_actions_need_the_page_they_come_from(server: Server, operator: Operator) -> None:
    running = create(server, script({"gate": "csrf-gate"}), background=True)
    with httpx.Client(base_url=server.url, cookies=operator.client.cookies) as client:
        answer = client.post(RESPONSES, data={"action": "cancel", "_selected_action": running})
    assert answer.status_code == 403
    server.open_gate("csrf-gate")
    eventually(lambda: server.body(running)["status"] == "completed")
