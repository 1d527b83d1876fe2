"""seed_responses: made-up responses that are as consistent as real ones."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.server import Server

ROWS = (
    "SELECT id, status, kind, previous_id, conversation_id, output, created_at, context_hash, tool_calls "
    "FROM responses_app_response ORDER BY id"
)


def owner_of(server: Server, condition: str) -> tuple[str, str, str]:
    """The id, the conversation and the owner's name of one seeded response."""
    sql = (
        "SELECT r.id, r.conversation_id, u.username FROM responses_app_response r JOIN auth_user u ON u.id = r.owner_id"
        f" WHERE r.is_stored AND {condition} ORDER BY r.chain_depth DESC, r.id LIMIT 1"
    )
    [(response_id, conversation, name)] = server.query(sql)
    return response_id, conversation, name


class AsOwner:
    """The API with the key of an owner, as the checker uses it."""

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self.key = server.manage("createkey", f"key of {name}", "--owner", name)

    def replay(self, response_id: str) -> list[bytes]:
        with self._server.http(self.key) as client:
            reply = client.get(f"/v1/responses/{response_id}", params={"stream": "true"})
        return [frame + b"\n\n" for frame in reply.content.split(b"\n\n") if frame]

    def body(self, response_id: str) -> dict[str, Any]:
        with self._server.http(self.key) as client:
            body: dict[str, Any] = client.get(f"/v1/responses/{response_id}").json()
        return body


def test_seeded_responses_are_consistent_and_continue(make_server: Callable[..., Server]) -> None:
    server = make_server()
    assert server.manage("seed_responses", "300") == "300 responses stored."
    exported = server.managed("export_responses").stdout
    checked = server.managed("import_responses", "-", "--dry-run", stdin=exported)
    assert checked.returncode == 0, checked.stderr.decode()[:2000]
    rows = server.query(ROWS)
    assert len(rows) == 300
    assert {row[1] for row in rows} == {"completed", "incomplete", "failed", "cancelled"}
    assert {row[2] for row in rows} == {"responses", "chat", "runs", "session_chat"}
    assert any(row[8] for row in rows)
    months = {str(row[6])[:7] for row in rows}
    assert len(months) >= 5

    response_id, _, name = owner_of(server, "r.conversation_id IS NULL AND r.kind = 'responses'")
    chained = AsOwner(server, name)
    check_log(chained, response_id)
    after = server.openai(chained.key).responses.create(input="and then?", previous_response_id=response_id)
    assert after.status == "completed"
    _, conversation, name = owner_of(server, "r.conversation_id IS NOT NULL")
    talking = chained if name == owner_of(server, f"r.id = '{response_id}'")[2] else AsOwner(server, name)
    after = server.openai(talking.key).responses.create(input="and then?", conversation=conversation)
    assert after.status == "completed"


@pytest.mark.any_database
def test_a_seed_gives_the_same_rows_once_and_no_rows_among_those_of_users(make_server: Callable[..., Server]) -> None:
    server = make_server()
    server.manage("seed_responses", "40", "--seed", "7")
    again = server.managed("seed_responses", "40", "--seed", "7")
    assert again.returncode == 1
    assert b"--seed 7 are here already" in again.stderr
    first = server.query(ROWS)
    server.change("DELETE FROM responses_app_inputitem")
    for table in ("eventsegment", "toolevent", "conversationitem", "searchentry"):
        server.change(f"DELETE FROM responses_app_{table}")
    server.change("DELETE FROM responses_app_response")
    server.change("DELETE FROM responses_app_conversation")
    server.change("DELETE FROM responses_app_session")
    server.manage("seed_responses", "40", "--seed", "7")
    assert server.query(ROWS) == first

    server.openai().responses.create(input="a user's own")
    refused = server.managed("seed_responses", "5", "--seed", "8")
    assert refused.returncode == 1
    assert b"--yes" in refused.stderr
    assert server.manage("seed_responses", "5", "--seed", "8", "--yes") == "5 responses stored."
    bad = server.managed("seed_responses", "0")
    assert b"count" in bad.stderr
