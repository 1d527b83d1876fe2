"""DELETE: no row, log line, metric or file of SQLite keeps any of the content."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.marked_requests import (
    in_front_of,
    marked_answer,
    marked_calls,
    marked_request,
)
from tests.support.markers import (
    Markers,
    assert_no_trace,
    in_files,
    in_rows,
)
from tests.support.mcp_harness import ServerWithMcp
from tests.support.migrated_database import Database
from tests.support.model_stub import Finish, ModelStub
from tests.support.server import Server, eventually, script
from tests.support.staff import RESPONSES, logged_in
from tests.support.stored_rows import stored_rows, until_merged

FILES_SECS = 60  # within this the files of SQLite have none of it
BEFORE_THE_ERASURE = "0013_fill_chains"
SWEPT_OFTEN = {"HERMES_SWEEP_SECS": "0.05", "TEST_LOG_LEVEL": "DEBUG"}


@pytest.fixture(scope="module")
def small(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests here that need nothing special."""
    running = database.server(tmp_path_factory.mktemp("home") / "h", Server, **SWEPT_OFTEN).start()
    yield running
    running.kill()


def assert_erased(server: Server, markers: Markers) -> None:
    """At once from rows, log and metrics; from the files when the housekeeping was there."""
    assert_no_trace(server, markers)
    eventually(lambda: not in_files(server, markers), FILES_SECS, "clean files")


def create(server: Server, headers: dict[str, str] | None = None, **body: Any) -> str:
    with server.http() as client:
        answer = client.post("/v1/responses", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    response_id: str = answer.json()["id"]
    return response_id


def add_merged(server: Server, response_id: str, markers: Markers) -> None:
    for (data,) in stored_rows(server, "eventsegment", "frames", response_id=response_id):
        markers.add_compressed(bytes(data))


@pytest.fixture
def front(make_server: Callable[..., Server], stub: ModelStub) -> Server:
    server = make_server(ServerWithMcp, **in_front_of(stub))
    eventually(lambda: "MCP server demo is ready" in server.log, 30, "the MCP server")
    return server


def test_nothing_of_a_deleted_response_is_left(front: Server, stub: ModelStub) -> None:
    server, marker = front, Markers()
    stub.play(marked_calls(marker), Finish())
    stub.play(*marked_answer(marker), Finish())
    response_id = create(server, {"Idempotency-Key": "one"}, background=True, **marked_request(marker))
    with server.http() as client:
        where = f"/v1/responses/{response_id}/approval"
        eventually(lambda: client.get(where).json()["pending"], what="the wait for consent")
        assert client.post(where, json={"choice": "once"}).status_code == 200
    assert server.ended(response_id)["status"] == "completed"
    # The ids of input items are replaced at admission.
    replaced = {"message id", "kept item id", "mcp item id"}
    assert {place for _, place in in_rows(server, marker)} == marker.places - replaced
    if "DATABASE_URL" not in server.env:
        until_merged(server, response_id)
        add_merged(server, response_id, marker)
    server.openai().responses.delete(response_id)
    assert_erased(server, marker)
    assert stored_rows(server, "idempotencykey", "digest") == [("",)]
    assert stored_rows(server, "response", "context_hash", "chat_context_hash", id=response_id) == [("", "")]


def test_nothing_of_what_an_operator_deletes_is_left(small: Server) -> None:
    marker = Markers()
    response_id = create(small, input=script({"say": f"{marker('text')} " * 2000}))
    with logged_in(small) as operator:
        operator.act(RESPONSES, "erase", response_id, confirmed="yes")
    assert_erased(small, marker)


def test_nothing_of_a_deleted_session_is_left(small: Server) -> None:
    marker = Markers()
    session_id = marker("session id")
    with small.http() as client:
        made = {"id": session_id, "system_prompt": marker("instructions")}
        assert client.post("/api/sessions", json=made).status_code == 201
    headers = {"X-Hermes-Session-Id": session_id, "X-Hermes-Session-Key": marker("session key")}
    response_id = create(small, headers, input=marker("input"))
    with logged_in(small) as operator:
        operator.act(RESPONSES, "fork", response_id)
    [(forked,)] = stored_rows(small, "session", "public_id", fork_point_id=response_id)
    with small.http() as client:
        title = {"title": marker("title")}
        assert client.patch(f"/api/sessions/{session_id}", json=title).status_code == 200
        assert {place for _, place in in_rows(small, marker)} == marker.places
        for one in (forked, session_id):
            assert client.delete(f"/api/sessions/{one}").status_code == 200
    assert_erased(small, marker)


def test_nothing_of_a_deleted_conversation_is_left(small: Server) -> None:
    marker = Markers()
    first = {"role": "user", "content": marker("first item")}
    second = {"role": "user", "content": marker("second item")}
    made: dict[str, Any] = {"name": marker("name"), "metadata": {"key": marker("metadata")}}
    made["items"] = [first, second]
    with small.http() as client:
        conversation = client.post("/v1/conversations", json=made).json()["id"]
        items = client.get(f"/v1/conversations/{conversation}/items").json()["data"]
        assert client.delete(f"/v1/conversations/{conversation}/items/{items[0]['id']}").is_success
        assert len({place for _, place in in_rows(small, marker)}) == 3
        assert client.delete(f"/v1/conversations/{conversation}").is_success
    assert_erased(small, marker)


def test_nothing_of_pruned_responses_is_left(small: Server) -> None:
    marker = Markers()
    create(small, input=marker("input"), instructions=marker("instructions"))
    small.manage("prune_responses", "--days", "0")
    assert_erased(small, marker)


def test_an_upgrade_erases_what_earlier_versions_left(small: Server) -> None:
    marker = Markers()
    response_id = create(small, input="calculate 1+1")
    small.openai().responses.delete(response_id)
    word = marker("left by an earlier version")
    unstored = create(small, input="calculate 1+1", store=False)
    small.kill()
    small.manage("migrate", "--verbosity", "0", "responses_app", BEFORE_THE_ERASURE)
    for pk in (response_id, unstored):
        on_row = f"ignored = '[\"{word}\"]', quirks = '[\"{word}\"]', session_key = '{word}', context_hash = '{word}'"
        small.change(f"UPDATE responses_app_response SET {on_row} WHERE id = ?", pk)
        on_calls = f"approval_reason = '{word}', call_id = '{word}'"
        small.change(f"UPDATE responses_app_toolevent SET {on_calls} WHERE response_id = ?", pk)
    tables = {table for table, _ in in_rows(small, marker)}
    assert tables == {"responses_app_response", "responses_app_toolevent"}
    small.manage("migrate", "--verbosity", "0")
    small.start()
    assert_erased(small, marker)


def test_a_reader_that_holds_the_files_does_not_keep_content_in_them(small: Server) -> None:
    """Its snapshot keeps the write-ahead log; meanwhile responses are stored as ever."""
    if "DATABASE_URL" in small.env:
        pytest.skip("PostgreSQL has no such files")
    marker = Markers()
    response_id = create(small, input=marker("input"))
    reader = sqlite3.connect(small.home / "hermes.sqlite3", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM responses_app_response").fetchone()
    small.openai().responses.delete(response_id)
    for number in range(20):
        create(small, input=f"meanwhile {number}")
    assert_no_trace(small, marker)
    assert in_files(small, marker) != set()
    reader.close()
    eventually(lambda: not in_files(small, marker), FILES_SECS, "clean files")
