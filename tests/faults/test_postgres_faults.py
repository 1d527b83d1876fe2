"""PostgreSQL that restarts, crashes or loses its connection within a write: nothing is lost or done twice."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.checker import (
    History,
    Seen,
    check_after_fault,
    check_all,
    traces,
)
from tests.support.databases import PostgresCluster, find_program, postgres_cluster
from tests.support.disturbed_writes import ask_until_stored, disturb_every_write, read_beside
from tests.support.flaky_proxy import WriteCutter
from tests.support.migrated_database import Database
from tests.support.ports import free_port
from tests.support.scripted_requests import call
from tests.support.server import Server, eventually, script, text
from tests.support.shutdowns import EXIT_SECS, GOES_ON, Reader, stop_with_signal
from tests.support.staff import logged_in
from tests.support.websockets import socket


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[PostgresCluster]:
    """Other tests go on using theirs."""
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not on this machine: apt-get install postgresql")
    with postgres_cluster(free_port()) as running:
        yield running


@pytest.fixture(scope="module")
def own_database(own_cluster: PostgresCluster, templates: Path) -> Database:
    return Database(templates, own_cluster)


@pytest.fixture
def start(own_database: Database, tmp_path: Path) -> Iterator[Callable[[], Server]]:
    made: list[Server] = []

    def make() -> Server:
        made.append(own_database.server(tmp_path / f"home{len(made)}", Server))
        return made[-1]

    yield make
    for server in made:
        server.kill()


def post_beside(server: Server, client: Seen, asked: str) -> threading.Thread:
    thread = threading.Thread(target=client.post, args=(server, {"input": asked}), daemon=True)
    thread.start()
    return thread


def _waiting_writes(server: Server) -> int:
    return int(server.query("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0])


@contextmanager
def _stopped(cluster: PostgresCluster, mode: str) -> Iterator[None]:
    cluster.stop(mode)
    try:
        yield
    finally:
        cluster.start()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_streams_go_on_when_postgresql_is_back(
    start: Callable[[], Server], own_cluster: PostgresCluster, mode: str
) -> None:
    server, history = start().start(), History()
    asked = script({"say": "before "}, call("effect", text=f"{mode} once", gate="go"))
    client = history.client()
    reading = read_beside(server, client, asked)
    eventually(lambda: f"{mode} once" in traces(server))
    with logged_in(server) as operator, _stopped(own_cluster, mode):
        with server.http() as http:
            refused = http.post("/v1/responses", json={"input": "while it is away"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "storage_unavailable")
            assert refused.headers["retry-after"]
            assert str(own_cluster.port) not in refused.text  # its address is in the log alone
            assert http.get(f"/v1/responses/{client.response_id}").status_code == 503
        for page in ("/", "/chat", "/admin/", "/admin/responses_app/response/"):
            answer = operator.client.get(page)
            assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), page
        server.open_gate("go")
        assert "Requests fail because the database is unavailable: connection" in server.log
    reading.join(30)
    assert client.cut is None
    assert client.frames[-1] == b"data: [DONE]\n\n"
    answer = eventually(lambda: server.openai().responses.create(model="hermes-agent", input="back"))
    history.note(answer.id)
    assert check_all(server, history) == 2
    assert "Traceback" not in server.log


def test_clients_get_notice_of_the_shutdown_while_the_database_hangs(start: Callable[[], Server]) -> None:
    server, history = start().start(), History()
    reader = Reader(server, input=GOES_ON)
    with socket(server) as connected:
        connected.create(input=GOES_ON)
        turn_id = connected.receive()["response"]["id"]
        eventually(lambda: reader.has_read(b"before ") and text(server.body(turn_id)) == "before ")
        with psycopg.connect(server.env["DATABASE_URL"]) as blocker:
            blocker.execute("LOCK TABLE responses_app_eventsegment IN ACCESS EXCLUSIVE MODE")
            late = history.client()
            asking = post_beside(server, late, "half way in")
            eventually(lambda: _waiting_writes(server))
            assert stop_with_signal(server) < 1 + EXIT_SECS
        asking.join(10)
        with pytest.raises(ConnectionClosed) as closed:
            connected.turn()
    assert reader.was_cut_with_notice()
    assert late.refusal.startswith("503 ")
    assert "request_interrupted" in late.refusal
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    check_after_fault(server)
    assert [text(server.body(found)) for found in (reader.response_id, turn_id)] == ["before after"] * 2


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_connection_lost_in_any_write_loses_and_repeats_nothing(
    start: Callable[[], Server], own_cluster: PostgresCluster, is_delivered: bool
) -> None:
    server, history = start(), History()
    with WriteCutter(own_cluster.port) as cutter:
        server.env["DATABASE_URL"] = server.env["DATABASE_URL"].replace(f":{own_cluster.port}/", f":{cutter.port}/")
        server.start()

        def disturb(nth: int) -> bool:
            before = cutter.cuts
            cutter.cut(nth, is_delivered=is_delivered)
            ask_until_stored(server, history, f"cut {nth}")
            cutter.cut(0, is_delivered=is_delivered)
            return cutter.cuts > before

        disturb_every_write(disturb)
        assert check_all(server, history) == cutter.cuts + 1  # a refusal had stored nothing
