"""With HERMES_AUTH=off, no route that takes items lets a caller without the root key approve a call."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script
from tests.support.stored_rows import stored_rows
from tests.support.websockets import socket

GREETING = {"role": "user", "content": "hello"}


def asked(client: httpx.Client, text: str) -> tuple[str, dict[str, Any]]:
    """The id of a turn, and the answer that approves its call."""
    body = client.post("/v1/responses", json={"input": script(call("client_guarded", text=text))}).json()
    request = body["output"][-1]
    assert request["type"] == "mcp_approval_request"
    answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    return body["id"], answer


def sent_with_items(previous: str, answer: dict[str, Any], session: str) -> list[tuple[str, dict[str, Any]]]:
    """Each route that takes items, with the answer among them."""
    chained = {"input": [answer], "previous_response_id": previous}
    compacted = {"model": None, "input": [GREETING, answer]}
    return [
        ("/v1/responses", chained),
        ("/v1/responses", {"input": [GREETING, answer]}),
        ("/v1/responses", {"input": "go on", "conversation_history": [answer]}),
        ("/v1/responses", {"input": [answer], "store": False}),
        ("/v1/responses/compact", chained | {"model": None}),
        ("/v1/responses/compact", compacted),
        ("/v1/responses/compact", compacted | {"store": False}),
        ("/v1/responses/input_tokens", {"input": [answer]}),
        ("/v1/runs", {"input": [answer]}),
        ("/v1/runs", {"input": "go on", "conversation_history": [answer]}),
        ("/v1/conversations", {"items": [answer]}),
        (f"/api/sessions/{session}/chat", {"message": [answer]}),
        (f"/api/sessions/{session}/chat", {"input": [answer]}),
    ]


# These store nothing that could run: one counts tokens, the other keeps items for a later turn.
WITHOUT_DECISIONS = ("/v1/responses/input_tokens", "/v1/conversations")


@pytest.mark.any_database
def test_items_without_the_root_key_approve_nothing(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_AUTH="off")
    with httpx.Client(base_url=server.url, timeout=30) as nameless, server.http() as root:
        session = nameless.post("/api/sessions", json={}).json()["session"]["id"]
        turn, answer = asked(nameless, "own call")
        for path, body in sent_with_items(turn, answer, session):
            refused = nameless.post(path, json=body)
            if path not in WITHOUT_DECISIONS:
                assert refused.status_code in (400, 403), (path, body, refused.text)
            columns = stored_rows(server, "toolevent", "status", "decision", response_id=turn)
            assert columns == [("awaiting_approval", "")], (path, body)
        with socket(server, key="hs-none") as connection:
            assert connection.ask(input=[answer])["error"]["code"] == "approval_not_allowed"
        nameless.post("/v1/responses", json={"input": "go on", "previous_response_id": turn})
        assert effects(server, "own call") == 0
        approved = root.post("/v1/responses", json={"input": [answer], "previous_response_id": turn})
        assert approved.status_code == 200, approved.text
    assert effects(server, "own call") == 1
    deciders = stored_rows(server, "toolevent", "decided_by", response_id=turn)
    assert deciders == [("key root",)]


def test_a_compaction_is_recorded_with_the_key_that_decides(server: Server) -> None:
    with server.http() as client:
        turn, answer = asked(client, "by compaction")
        body = {"model": None, "input": [GREETING, {"role": "assistant", "content": "hi"}, answer]}
        done = client.post("/v1/responses/compact", json=body)
        assert done.status_code == 200, done.text
    assert stored_rows(server, "toolevent", "decision", "decided_by", response_id=turn) == [("once", "key root")]


def test_a_caller_without_a_key_is_recorded_as_one(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_AUTH="off")
    with httpx.Client(base_url=server.url, timeout=30) as nameless, server.http() as root:
        first = nameless.post("/v1/responses", json={"input": "hello"}).json()["id"]
        second = root.post("/v1/responses", json={"input": "hello"}).json()["id"]
    assert stored_rows(server, "response", "requested_by", id=first) == [("unauthenticated",)]
    assert stored_rows(server, "response", "requested_by", id=second) == [("key root",)]
