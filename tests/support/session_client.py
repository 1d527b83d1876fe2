"""``/api/sessions`` as a frontend uses it."""

from typing import Any

from tests.support.hermes_client import get, post
from tests.support.server import Server, script


def create_session(server: Server, **fields: Any) -> dict[str, Any]:
    answer = post(server, "/api/sessions", fields)
    assert answer.status_code == 201, answer.text
    assert answer.json()["object"] == "hermes.session"
    session: dict[str, Any] = answer.json()["session"]
    return session


def read_session(server: Server, session_id: str) -> dict[str, Any]:
    answer = get(server, f"/api/sessions/{session_id}")
    assert answer.status_code == 200, answer.text
    session: dict[str, Any] = answer.json()["session"]
    return session


def read_messages(server: Server, session_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = get(server, f"/api/sessions/{session_id}/messages", **params)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


def send_message(server: Server, session_id: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"message": script(*steps) if steps else "hello", **fields}
    answer = post(server, f"/api/sessions/{session_id}/chat", body)
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def update_session(server: Server, session_id: str, **fields: Any) -> Any:
    with server.http() as client:
        return client.patch(f"/api/sessions/{session_id}", json=fields)
