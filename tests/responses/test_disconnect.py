"""What happens to the work when the connection that asked for it is gone."""

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import psycopg
import pytest

from responses_app.protocol.events import Event
from responses_app.protocol.snapshot import fold
from tests.support.checker import check_witnessed
from tests.support.server import (
    Server,
    created_id,
    events,
    eventually,
    frames,
    script,
    streaming,
    text,
)
from tests.support.stored_rows import count_rows, ids_with_input, stored_rows

pytestmark = pytest.mark.any_database

DAPHNE_PATIENCE_SECS = 10  # with the task of a request whose client has left


@pytest.fixture(autouse=True)
def checked(server: Server) -> Iterator[None]:
    server.witnessed.clear()
    yield
    check_witnessed(server)


def wait_for_renewal(server: Server) -> None:
    before = stored_rows(server, "runtimeprocess", "heartbeat_at", state="running")
    eventually(
        lambda: stored_rows(server, "runtimeprocess", "heartbeat_at", state="running") != before,
        what="a renewal of the leases",
    )


def test_a_stored_response_goes_on_without_its_client(server: Server) -> None:
    asked = script({"say": "one two "}, {"gate": "goes-on"}, {"say": "three"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
    assert server.body(response_id)["status"] == "in_progress"
    server.open_gate("goes-on")
    assert text(server.ended(response_id)) == "one two three"


def test_a_client_that_leaves_a_plain_post_finds_the_answer_later(server: Server) -> None:
    asked = script({"gate": "plain-post"}, {"say": "still here"})
    _post_and_leave(server, json.dumps({"input": asked}).encode())
    [response_id] = ids_with_input(server, "plain-post")
    server.open_gate("plain-post")
    assert text(server.ended(response_id)) == "still here"


def test_an_unstored_response_is_stopped_upstream_within_two_seconds(server: Server) -> None:
    marker = "store-false-stop"
    asked = script({"say": f"{marker} "}, {"gate": "never-opened"})
    with streaming(server, input=asked, store=False) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: server.model_calls(marker), what="the model call")
    left_at = time.monotonic()
    eventually(lambda: [c for c in server.model_calls(marker) if c["event"] == "stopped"], 2, "the upstream's end")
    assert time.monotonic() - left_at < 2
    eventually(lambda: _row(server, response_id)[0] == "cancelled", what="the settled row")


def test_a_client_can_ask_that_its_stored_response_stops_with_it(server: Server) -> None:
    asked = script({"say": "one two "}, {"gate": "never-opened"})
    stopping = {"X-Hermes-On-Disconnect": "cancel"}
    with (
        server.http() as client,
        client.stream("POST", "/v1/responses", json={"input": asked, "stream": True}, headers=stopping) as answer,
    ):
        received = frames(answer)
        response_id = created_id(next(received))
        next(frame for frame in received if b"one" in frame)
    assert text(server.ended(response_id)).startswith("one")
    assert server.body(response_id)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("value", "fields"),
    [("stop", {}), ("cancel", {"background": True}), ("continue", {"store": False})],
)
def test_a_choice_that_can_not_be_kept_is_refused(server: Server, value: str, fields: dict[str, bool]) -> None:
    with server.http() as client:
        headers = {"X-Hermes-On-Disconnect": value}
        answer = client.post("/v1/responses", json={"input": "hi", **fields}, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "X-Hermes-On-Disconnect"


def test_an_unstored_stream_is_as_whole_as_a_stored_one(server: Server) -> None:
    received: dict[bool, list[dict[str, Any]]] = {}
    for store in (True, False):
        with streaming(server, input="think, then calculate 6*7", store=store) as (_, frames):
            received[store] = events(list(frames))
    stored, unstored = ([event["type"] for event in received[store]] for store in (True, False))
    assert unstored == stored
    assert [event["sequence_number"] for event in received[False]] == list(range(len(unstored)))
    assert fold(cast(list[Event], received[False][:-1]))["output"] == received[False][-1]["response"]["output"]


def test_unstored_turns_wait_their_turn_in_a_session(server: Server) -> None:
    header = {"X-Hermes-Session-Id": "unstored-queue"}
    client = server.openai()
    gate = script({"gate": "unstored-queue"}, {"say": "x"})
    first = client.responses.create(model="hermes-agent", input=gate, background=True, extra_headers=header)
    found: list[str | None] = []

    def ask(store: bool) -> None:
        answer = client.responses.create(model="hermes-agent", input="y", store=store, extra_headers=header)
        found.append(answer.status)

    waiting = [threading.Thread(target=ask, args=(store,)) for store in (False, True)]
    for thread in waiting:
        thread.start()
    eventually(lambda: count_rows(server, "response", status="queued") >= 2)
    wait_for_renewal(server)
    wait_for_renewal(server)
    server.open_gate("unstored-queue")
    for thread in waiting:
        thread.join(20)
    assert found == ["completed", "completed"]
    assert server.ended(first.id)["status"] == "completed"


def test_an_unstored_response_leaves_no_content_behind(server: Server) -> None:
    secret = "violet-hippopotamus"
    with streaming(server, input=f"{secret} calculate 1+1", store=False, instructions=secret) as (_, received):
        found = events(list(received))
    response_id = found[0]["response"]["id"]
    assert found[-1]["response"]["status"] == "completed"
    status, request, output, attempt = _row(server, response_id)
    assert (status, request, output, attempt) == ("completed", "{}", None, 1)
    for table, column in (("inputitem", "item"), ("eventsegment", "frames")):
        assert stored_rows(server, table, column, response_id=response_id) == []
    tools = stored_rows(server, "toolevent", "name", "arguments", "output", response_id=response_id)
    assert tools == [("calculate", "", "")]
    with server.http() as client:
        for path in ("", "?stream=true"):
            gone = client.get(f"/v1/responses/{response_id}{path}")
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "response_not_found")


def test_an_unstored_response_can_be_cancelled_while_it_runs(server: Server) -> None:
    asked = script({"say": "begun "}, {"gate": "never"})
    with streaming(server, input=asked, store=False) as (_, received):
        response_id = created_id(next(received))
        with server.http() as client:
            answer = client.post(f"/v1/responses/{response_id}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
        last = events(list(received))[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "cancelled"


def test_who_leaves_during_a_slow_admission_has_left_all_the_same(make_server: Callable[..., Server]) -> None:
    """The server ends the request's task long before the database answers."""
    server = make_server(HERMES_LEASE_SECS="60")
    server.openai().responses.create(input="hi")  # the first request of a process takes longer to read
    with _writes_blocked(server):
        body = json.dumps({"input": script({"gate": "never"}), "store": False, "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(_post(server, body))
            with server.http() as client:  # five requests later, the first is read and waits for the database
                assert {client.get("/v1/responses/resp_x?stream=true").status_code for _ in range(5)} == {404}
        time.sleep(DAPHNE_PATIENCE_SECS + 2)
    eventually(lambda: ("cancelled",) in stored_rows(server, "response", "status"), what="the stop")
    assert "Traceback" not in server.log
    assert "killed" not in server.log


@contextmanager
def _writes_blocked(server: Server) -> Iterator[None]:
    url = server.env.get("DATABASE_URL")
    if url is None:
        with closing(sqlite3.connect(server.home / "hermes.sqlite3", isolation_level=None)) as sqlite:
            sqlite.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(url) as postgres:
            postgres.execute("LOCK TABLE responses_app_response IN EXCLUSIVE MODE")
            yield


def _row(server: Server, response_id: str) -> tuple[object, ...]:
    return stored_rows(server, "response", "status", "request", "output", "attempt", id=response_id)[0]


def _post(server: Server, body: bytes) -> bytes:
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _post_and_leave(server: Server, body: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(_post(server, body))
        eventually(lambda: ids_with_input(server, "plain-post"))
