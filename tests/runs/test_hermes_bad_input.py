"""Whatever stands in a field of runs and sessions, the answer is an answer, and a refusal names the field."""

from typing import Any

import pytest

from tests.support.hermes_client import get, post
from tests.support.server import Server
from tests.support.session_client import create_session

ODD: list[Any] = [True, 0, -1.5, "", "x" * 500, "a\nb", "ü", [], {}, [None], [[]], [{}], {"a": None}, [{"content": {}}]]
FIELDS = {
    "/v1/runs": (
        "input",
        "conversation_history",
        "session_id",
        "previous_response_id",
        "instructions",
        "model",
        "tools",
    ),
    "/api/sessions": ("id", "session_id", "title", "source", "system_prompt", "model", "turn_policy"),
    "/api/sessions/{}/fork": ("id", "title", "response_id"),
    "/api/sessions/{}/chat": ("message", "input", "system_message", "model", "previous_response_id"),
    "/api/sessions/{}/model": ("model",),
}
CASES = [(path, field) for path, fields in FIELDS.items() for field in fields]


@pytest.mark.parametrize(("path", "field"), CASES)
def test_odd_values_are_taken_or_named(server: Server, path: str, field: str) -> None:
    path = path.format(create_session(server)["id"])
    filling = {"input": "x"} if path == "/v1/runs" else {"message": "x"} if path.endswith("chat") else {}
    if field in ("input", "message"):
        filling = {}
    for value in ODD:
        answer = post(server, path, {**filling, field: value})
        assert answer.status_code < 500, (value, answer.text)
        if answer.status_code >= 400:
            assert str(answer.json()["error"]["param"]).startswith(field), (value, answer.text)


def test_odd_changes_are_taken_or_named(server: Server) -> None:
    with server.http() as client:
        for field in ("title", "end_reason", "pinned", "archived", "hidden", "unread", "turn_policy", "id", "odd"):
            session_id = create_session(server)["id"]
            for value in [*ODD, None]:
                answer = client.patch(f"/api/sessions/{session_id}", json={field: value})
                assert answer.status_code < 500, (field, value, answer.text)
                assert answer.status_code == 200 or answer.json()["error"]["param"] == field
                if field == "title":  # another session may have it
                    client.patch(f"/api/sessions/{session_id}", json={"title": None})


@pytest.mark.parametrize("path", ["/api/sessions", "/v1/runs", "/api/sessions/{}/messages"])
def test_odd_queries_are_taken_or_named(server: Server, path: str) -> None:
    path = path.format(create_session(server)["id"])
    names = ("limit", "offset", "after", "before", "order", "source", "title", "status", "session_id", "include_hidden")
    for name in names:
        for value in ("", "x", "-1", "1" * 30, "\0", "ü", "true"):
            answer = get(server, path, **{name: value})
            assert answer.status_code < 500, (name, value, answer.text)
            assert answer.status_code == 200 or answer.json()["error"]["param"] == name


def test_odd_ids_and_methods(server: Server) -> None:
    session_id = create_session(server)["id"]
    with server.http() as client:
        for odd in ("%00", "%0A", "%C3%BC", "x" * 3000, "..%5C"):
            for path in (f"/v1/runs/{odd}", f"/v1/runs/{odd}/events", f"/api/sessions/{odd}"):
                assert client.get(path).status_code == 404
            for path in (f"/v1/runs/{odd}/stop", f"/v1/runs/{odd}/approval", f"/api/sessions/{odd}/chat"):
                assert client.post(path, json={"message": "x", "choice": "once"}).status_code == 404
        for method, path in (
            *(("GET", f"/api/sessions/{session_id}/chat"), ("PUT", f"/api/sessions/{session_id}/chat/stream")),
            *(("POST", "/v1/runs/run_x/events"), ("PUT", "/v1/runs"), ("POST", f"/api/sessions/{session_id}")),
        ):
            refused = client.request(method, path, json={})
            assert (refused.status_code, refused.json()["error"]["code"]) == (405, "method_not_allowed")
