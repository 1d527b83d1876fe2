"""Staff see and do what their permissions allow, on every page and stream of the operators."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.server import Server, eventually, script
from tests.support.staff import (
    STAFF_PASSWORD,
    Operator,
    logged_in,
    make_staff,
)

pytestmark = pytest.mark.any_database
PAGES = ("/", "/dashboard/now", "/dashboard/past", "/platforms")


@pytest.fixture(scope="module")
def plain(server: Server) -> Iterator[Operator]:
    """Staff without any permission."""
    make_staff(server, "plain")
    with logged_in(server, "plain", STAFF_PASSWORD) as operator:
        yield operator


@pytest.fixture
def waiting(server: Server) -> str:
    """A response whose tool call waits for approval."""
    response_id = ask(server, {"call": "guarded", "arguments": {"text": "marked words"}})
    with server.http() as client:
        path = f"/v1/responses/{response_id}/approval"
        eventually(lambda: client.get(path).json()["pending"])
    return response_id


def ask(server: Server, *steps: dict[str, Any]) -> str:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), "background": True})
    response_id: str = answer.json()["id"]
    return response_id


def post(operator: Operator, path: str, **fields: str) -> httpx.Response:
    token = operator.client.cookies.get("csrftoken") or ""
    return operator.client.post(path, data=fields, headers={"X-CSRFToken": token})


def test_staff_without_permissions_see_nothing(server: Server, plain: Operator, waiting: str) -> None:
    for path in (*PAGES, "/chat", f"/live/{waiting}"):
        answer = plain.client.get(path)
        assert (answer.status_code, "marked words" in answer.text) == (403, False), path
    assert "responses_app.view_response" in plain.client.get("/").text
    assert plain.client.get(f"/live/{waiting}/events").status_code == 401
    part = plain.client.get("/dashboard/now", headers={"HX-Request": "true"})
    assert part.status_code == 403
    for path in (f"/live/{waiting}/cancel", f"/live/{waiting}/approval", "/chat/token"):
        assert post(plain, path, choice="once").status_code == 403, path
    assert server.body(waiting)["status"] == "in_progress"


def test_a_page_that_is_not_allowed_is_not_in_the_menu(plain: Operator, viewer: Operator) -> None:
    refused = plain.client.get("/").text
    assert ">Dashboard<" not in refused
    assert ">Playground<" not in refused
    shown = viewer.page("/")
    assert ">Dashboard<" in shown
    assert ">Playground<" not in shown


def test_viewers_watch_and_have_no_buttons_that_fail(server: Server, viewer: Operator, waiting: str) -> None:
    page = viewer.page(f"/live/{waiting}")
    assert 'id="cancel"' not in page
    assert 'data-decisions=""' in page
    assert "/admin/responses_app/session/" not in page + viewer.page("/")
    with viewer.client.stream("GET", f"/live/{waiting}/events") as stream:
        assert stream.status_code == 200
    assert post(viewer, f"/live/{waiting}/cancel").status_code == 403
    assert post(viewer, f"/live/{waiting}/approval", choice="once").status_code == 403
    assert server.body(waiting)["status"] == "in_progress"


def test_each_action_needs_its_own_permission(server: Server, waiting: str) -> None:
    make_staff(server, "decider", "view_response", "decide_toolevent")
    with logged_in(server, "decider", STAFF_PASSWORD) as decider:
        page = decider.page(f"/live/{waiting}")
        assert 'id="cancel"' not in page
        assert 'data-decisions="once session always deny"' in page
        assert post(decider, f"/live/{waiting}/cancel").status_code == 403
        assert post(decider, f"/live/{waiting}/approval", choice="deny").status_code == 200
    assert server.ended(waiting)["status"] == "completed"


def test_a_canceller_may_not_decide(server: Server, waiting: str) -> None:
    make_staff(server, "canceller", "view_response", "change_response")
    with logged_in(server, "canceller", STAFF_PASSWORD) as canceller:
        assert post(canceller, f"/live/{waiting}/approval", choice="once").status_code == 403
        assert post(canceller, f"/live/{waiting}/cancel").status_code == 200
    assert server.ended(waiting)["status"] == "cancelled"


def test_the_playground_and_its_token_need_a_permission(server: Server) -> None:
    make_staff(server, "token-player", "use_playground")
    with logged_in(server, "token-player", STAFF_PASSWORD) as player:
        player.page("/chat")
        token = post(player, "/chat/token").json()["token"]
    with server.http(token) as client:
        assert client.get("/v1/models").status_code == 200
        take_away = "User.objects.get(username='token-player').user_permissions.clear()"
        server.manage("shell", "-v0", "-c", f"from django.contrib.auth.models import User; {take_away}")
        assert client.get("/v1/models").status_code == 401


def test_the_admin_asks_for_the_same_permission_to_decide(server: Server, waiting: str) -> None:
    make_staff(server, "tool-viewer", "view_toolevent", "view_response", "change_response")
    with logged_in(server, "tool-viewer", STAFF_PASSWORD) as operator:
        page = operator.page("/admin/responses_app/toolevent/")
        assert 'value="allow_once"' not in page
    make_staff(server, "tool-decider", "view_toolevent", "decide_toolevent")
    with logged_in(server, "tool-decider", STAFF_PASSWORD) as operator:
        assert 'value="allow_once"' in operator.page("/admin/responses_app/toolevent/")
    with server.http() as client:
        client.post(f"/v1/responses/{waiting}/approval", json={"choice": "deny"})


def test_the_live_view_shows_every_kind_of_input_item(server: Server, viewer: Operator) -> None:
    call = {"type": "function_call", "call_id": "call_live", "name": "look", "arguments": '{"at": "sky"}'}
    output = {"type": "function_call_output", "call_id": "call_live", "output": "blue sky"}
    parts = {**output, "call_id": "call_parts", "output": [{"type": "input_text", "text": "red sky"}]}
    second = {**call, "call_id": "call_parts"}
    question = {"role": "user", "content": [{"type": "input_text", "text": "and now?"}]}
    with server.http() as client:
        items = [call, output, second, parts, question]
        answer = client.post("/v1/responses", json={"input": items})
        assert answer.status_code == 200, answer.text
    page = viewer.page(f"/live/{answer.json()['id']}")
    for shown in ("blue sky", "red sky", "and now?", "function_call_output"):
        assert shown in page


def test_a_session_shows_and_exports_no_response_without_the_permission(server: Server) -> None:
    make_staff(server, "session-viewer", "view_session")
    with logged_in(server, "session-viewer", STAFF_PASSWORD) as operator:
        assert operator.client.get("/admin/responses_app/session/").status_code == 403
