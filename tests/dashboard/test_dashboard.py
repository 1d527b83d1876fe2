"""The operators' pages by their answers: who may see them, what may be loaded, and what they cost."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.support.browser import credentials
from tests.support.server import (
    NO_TLS,
    Server,
    eventually,
    frames,
    script,
)
from tests.support.staff import STAFF_PASSWORD, csrf, log_in, make_staff, response_page
from tests.support.stored_rows import admin_history, stored_rows

PAGES = ("/", "/dashboard/now", "/dashboard/past", "/chat")


@pytest.fixture(scope="module")
def staff(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30, follow_redirects=True, verify=NO_TLS) as client:
        log_in(client, *credentials(server))
        yield client


def ask(server: Server, *steps: dict[str, Any], **fields: Any) -> str:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), "background": True, **fields})
    response_id: str = answer.json()["id"]
    return response_id


def test_strangers_keys_and_ordinary_users_see_nothing(server: Server) -> None:
    response_id = ask(server, {"say": "secret"})
    server.ended(response_id)
    server.manage(
        "shell",
        *("-v0", "-c", "from django.contrib.auth.models import User; User.objects.create_user('guest', password='p')"),
    )
    with (
        server.http() as keyed,
        httpx.Client(base_url=server.url) as stranger,
        httpx.Client(base_url=server.url) as guest,
    ):
        log_in(guest, "guest", "p")
        for client in (keyed, stranger, guest):
            for path in (*PAGES, f"/live/{response_id}"):
                answer = client.get(path)
                assert (answer.status_code, "secret" in answer.text) == (302, False), path
            assert client.get("/dashboard/now", headers={"HX-Request": "true"}).status_code == 401
            assert client.get(f"/live/{response_id}/events").status_code == 401
            assert client.get("/chat/playground-12345678/turns").status_code == 302
            assert client.post("/chat/token").status_code in (401, 403)


def test_pages_allow_no_inline_script_and_no_frame(server: Server, staff: httpx.Client) -> None:
    response_id = ask(server, {"say": "hello"})
    for path in (*PAGES, f"/live/{response_id}", "/admin/", "/live/resp_unknown"):
        answer = staff.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"  # without any, browsers hide a form's origin
        inline = re.findall(
            r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>|<[^>]*\s(?:on\w+|style)=", answer.text
        )
        assert inline == [], path


def test_the_playground_lists_the_turns_of_its_operator(server: Server, staff: httpx.Client) -> None:
    make_staff(server, "player", "use_playground")
    session = {"X-Hermes-Session-Id": "playground-turns1234"}
    create = server.openai().responses.create
    first, second = (create(input=asked, extra_headers=session).id for asked in ("one", "two"))
    path = f"/chat/{session['X-Hermes-Session-Id']}/turns"
    listed = staff.get(path).json()["data"]
    shown = [(turn["id"], turn["turn"], turn["asked"]) for turn in listed]
    assert shown == [(first, 1, "one"), (second, 2, "two")]
    later = staff.get(path, params={"after": "1"}).json()["data"]
    assert [turn["id"] for turn in later] == [second]
    for bad in ("x", "-1", "1" * 20):
        refused = staff.get(path, params={"after": bad})
        assert (refused.status_code, "after" in refused.text) == (400, True), bad
    with httpx.Client(base_url=server.url, verify=NO_TLS) as other:
        log_in(other, "player", STAFF_PASSWORD)
        assert other.get(path).json() == {"data": []}


def test_unknown_and_deleted_responses_are_not_found(server: Server, staff: httpx.Client) -> None:
    response_id = ask(server, {"say": "gone"})
    server.ended(response_id)
    server.openai().responses.delete(response_id)
    for name in (response_id, "resp_unknown", "%00"):
        assert staff.get(f"/live/{name}").status_code == 404
        assert staff.get(f"/live/{name}/events").status_code == 404


def test_decisions_need_the_token_of_the_page(server: Server, staff: httpx.Client) -> None:
    response_id = ask(server, {"gate": "dashboard-never"})
    assert staff.post(f"/live/{response_id}/cancel").status_code == 403
    assert staff.get(f"/live/{response_id}/cancel").status_code == 405
    headers = {"X-CSRFToken": csrf(staff, f"/live/{response_id}")}
    bad = staff.post(f"/live/{response_id}/approval", data={"choice": "maybe"}, headers=headers)
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "choice")
    none = staff.post(f"/live/{response_id}/approval", data={"choice": "once"}, headers=headers)
    assert (none.status_code, none.json()["error"]["code"]) == (409, "approval_not_pending")
    assert staff.post(f"/live/{response_id}/cancel", headers=headers).json()["requested"] is True
    assert server.ended(response_id)["status"] == "cancelled"
    assert admin_history(server, response_id) == [("admin", "Cancellation requested.")]


def test_the_live_log_has_every_event_its_time_and_can_be_resumed(server: Server, staff: httpx.Client) -> None:
    response_id = ask(server, {"think": "hm "}, {"call": "effect", "arguments": {"text": "x"}})
    server.ended(response_id)
    live = read_live(staff, response_id)
    kinds = [entry["event"]["type"] for entry in live]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert {"hermes.tool.started", "hermes.tool.finished"} <= set(kinds)
    assert [entry["id"] for entry in live] == list(range(len(live)))
    times = [entry["at"] for entry in live]
    assert times == sorted(times)
    public = [entry["event"] for entry in live if not entry["event"]["type"].startswith("hermes.")]
    assert [event["sequence_number"] for event in public] == list(range(len(public)))
    assert read_live(staff, response_id, **{"Last-Event-ID": "4"}) == live[5:]


def test_the_live_view_links_to_the_stored_row(server: Server, staff: httpx.Client) -> None:
    """The admin reads "_24" in an address as a dollar sign, and an id may begin like that."""
    response_id = ask(server)
    server.ended(response_id)
    assert f'href="{response_page(response_id)}"' in staff.get(f"/live/{response_id}").text


def test_times_are_those_of_the_commits_also_when_the_log_is_merged(server: Server, staff: httpx.Client) -> None:
    response_id = ask(server, {"say": "a "}, {"gate": "dashboard-merge"}, {"say": "b"})
    server.open_gate("dashboard-merge")
    server.ended(response_id)
    before = read_live(staff, response_id)
    stored = ",".join(
        row[0]
        for row in stored_rows(
            server, "eventsegment", "commit_marks", order_by="first_position", response_id=response_id
        )
    ).split(",")
    last = {int(mark.split(":")[0]): int(mark.split(":")[1]) for mark in stored}
    for entry in before:
        committed = last[min(position for position in last if position >= entry["id"])]
        assert abs(entry["at"] - committed) < 1000


def read_live(staff: httpx.Client, response_id: str, **headers: str) -> list[dict[str, Any]]:
    with staff.stream("GET", f"/live/{response_id}/events", headers=headers) as answer:
        assert answer.status_code == 200
        received = list(frames(answer))
    assert received[-1] == b"event: end\ndata: {}\n\n"
    found = []
    for frame in received[:-1]:
        number, data = frame.split(b"\n")[:2]
        found.append({"id": int(number.removeprefix(b"id: ")), **orjson.loads(data.removeprefix(b"data: "))})
    return found


def test_what_is_not_stored_is_not_shown(server: Server, staff: httpx.Client) -> None:
    asked = {"input": script({"say": "private words"}, {"gate": "dashboard-private"}), "store": False, "stream": True}
    with server.http() as client, client.stream("POST", "/v1/responses", json=asked) as answer:
        first = next(frames(answer))
        response_id = re.findall(rb'"id":"(resp_\w+)"', first)[0].decode()
        page = staff.get(f"/live/{response_id}")
        assert page.status_code == 200
        assert "private words" not in page.text
        assert "is not stored" in page.text
        assert staff.get(f"/live/{response_id}/events").status_code == 404
        server.open_gate("dashboard-private")


def test_the_playground_token_is_the_operators_own(server: Server, staff: httpx.Client) -> None:
    headers = {"X-CSRFToken": csrf(staff, "/chat")}
    given = staff.post("/chat/token", headers=headers).json()
    assert given["expires_in"] == 3600
    assert given["token"] != server.key
    assert given["token"] not in staff.get("/chat").text
    with server.http(given["token"]) as client:
        assert client.get("/v1/models").status_code == 200
        body = client.post("/v1/responses", json={"input": "hello"}).json()
    assert stored_rows(server, "response", "requested_by", id=body["id"]) == [("operator admin",)]
    with server.http(given["token"][:-1] + ("A" if given["token"][-1] != "A" else "B")) as client:
        assert client.get("/v1/models").status_code == 401


def test_a_token_ends_with_the_rights_and_the_password_of_its_user(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_AUTH="off")  # an open server too knows its operators by name
    with httpx.Client(base_url=server.url, timeout=30, follow_redirects=True) as staff:
        log_in(staff, *credentials(server))
        token = staff.post("/chat/token", headers={"X-CSRFToken": csrf(staff, "/chat")}).json()["token"]
    find = "from django.contrib.auth.models import User; user = User.objects.get(username='admin'); "
    with server.http(token) as client:
        assert client.get("/v1/models").status_code == 200
        server.manage("shell", "-v0", "-c", find + "user.is_staff = False; user.save()")
        assert client.get("/v1/models").status_code == 401
        server.manage("shell", "-v0", "-c", find + "user.is_staff = True; user.set_password('another'); user.save()")
        assert client.get("/v1/models").status_code == 401


def test_an_ended_response_knows_what_it_took(server: Server) -> None:
    response_id = ask(server, {"say": "first "}, {"call": "effect", "arguments": {"gate": "dashboard-took"}})
    parked = ask(server, {"say": "first "}, {"call": "guarded", "arguments": {"text": "took"}})
    eventually(lambda: "first " in str(server.body(response_id)["output"]))
    with server.http() as client:
        eventually(lambda: client.get(f"/v1/responses/{parked}/approval").json()["pending"])
        time.sleep(0.3)  # separates the first output from the end
        client.post(f"/v1/responses/{parked}/approval", json={"choice": "once"})
    server.open_gate("dashboard-took")
    for name in (response_id, parked):
        usage = server.ended(name)["usage"]
        first, total, *rest = stored_rows(
            server,
            "response",
            "first_output_ms",
            "total_ms",
            "input_tokens",
            "output_tokens",
            "tool_calls",
            "requested_by",
            id=name,
        )[0]
        assert 0 < first < total - 200
        assert rest == [usage["input_tokens"], usage["output_tokens"], 1, "key root"]
