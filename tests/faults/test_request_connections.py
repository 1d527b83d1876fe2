"""Requests share a few PostgreSQL connections: parallel ones wait for each other and none opens its own."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from responses_app.database import READ_THREADS
from responses_app.models.recent import FRESH_SECS
from tests.support.checker import History
from tests.support.databases import PostgresCluster
from tests.support.server import Server, eventually, script

PARALLEL = 200  # five times as many as the cluster has connections
CLIENT_SECS = 60.0


@pytest.fixture(scope="module")
def server(prepare: Callable[..., Server]) -> Server:
    return prepare().start()


@pytest.fixture(scope="module")
def small_server(prepare: Callable[..., Server]) -> Server:
    return prepare(HERMES_DATABASE_POOL="2", HERMES_DATABASE_TIMEOUT="3").start()


def stored_id(server: Server) -> str:
    return server.openai().responses.create(model="hermes-agent", input="hello").id


def gets(server: Server, path: str, count: int) -> list[int]:
    """The status codes of so many GETs, all under way at once, each on a connection of its own."""
    all_ready = threading.Barrier(count)

    def get(_: int) -> int:
        with server.http() as client:
            all_ready.wait(CLIENT_SECS)
            return client.get(path, timeout=CLIENT_SECS).status_code

    with ThreadPoolExecutor(count) as clients:
        return list(clients.map(get, range(count)))


@contextmanager
def locked_users(server: Server) -> Iterator[None]:
    """Every request that looks up its owner waits; the writer and running turns need no such look."""
    with psycopg.connect(server.env["DATABASE_URL"]) as blocker:
        blocker.execute("LOCK TABLE auth_user IN ACCESS EXCLUSIVE MODE")
        time.sleep(2 * FRESH_SECS)  # until what was read before the lock is forgotten
        yield


def waiting_for_locks(server: Server) -> int:
    return int(server.query("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0])


def test_more_requests_than_connections_are_all_answered(server: Server) -> None:
    path = f"/v1/responses/{stored_id(server)}"
    assert gets(server, path, PARALLEL) == [200] * PARALLEL


def test_a_request_opens_no_connection_of_its_own(server: Server, own_cluster: PostgresCluster) -> None:
    path = f"/v1/responses/{stored_id(server)}"
    name = server.env["DATABASE_URL"].rpartition("/")[2]
    with server.http() as client:
        assert client.get(path).status_code == 200
        before = own_cluster.connections_opened(name)
        codes = [client.get(path).status_code for _ in range(30)]
        assert codes == [200] * 30
        assert client.get("/health/detailed").status_code == 200
    # Health has one for itself, and each reader thread opens its own with the first query that reaches it.
    assert own_cluster.connections_opened(name) - before <= 1 + READ_THREADS


def test_requests_without_a_free_connection_are_refused_while_the_writer_goes_on(
    small_server: Server,
) -> None:
    server = small_server
    path, reader = f"/v1/responses/{stored_id(server)}", History().client()
    asked = {"input": script({"say": "before "}, {"gate": "go"}, {"say": "after"})}
    reading = threading.Thread(target=reader.read, args=(server, asked), daemon=True)
    reading.start()
    eventually(lambda: any(b"before " in frame for frame in reader.frames))
    with ThreadPoolExecutor(6) as clients, locked_users(server):
        waiting = [clients.submit(refused_get, server, path) for _ in range(6)]
        eventually(lambda: waiting_for_locks(server) == 2)  # the others wait for a connection
        server.open_gate("go")
        reading.join(30)
        assert reader.frames[-1] == b"data: [DONE]\n\n"
        assert [found.result() for found in waiting] == [(503, "storage_unavailable", "1")] * 6
    assert gets(server, path, 6) == [200] * 6


def refused_get(server: Server, path: str) -> tuple[int, str, str]:
    with server.http() as client:
        answer = client.get(path)
    return answer.status_code, answer.json()["error"]["code"], answer.headers["retry-after"]


def test_clients_that_leave_take_no_connection_with_them(small_server: Server) -> None:
    server = small_server
    path = f"/v1/responses/{stored_id(server)}"
    with locked_users(server), ThreadPoolExecutor(4) as clients:
        leaving = [clients.submit(leave_waiting, server, path) for _ in range(4)]
        assert [found.result() for found in leaving] == [True] * 4
    assert gets(server, path, 6) == [200] * 6


def leave_waiting(server: Server, path: str) -> bool:
    """Ask, and close the connection while the request waits for a lock."""
    try:
        with server.http() as client:
            client.get(path, timeout=1)
    except httpx.ReadTimeout:
        return True
    return False


def test_a_restart_of_the_database_costs_no_later_request(server: Server, own_cluster: PostgresCluster) -> None:
    path = f"/v1/responses/{stored_id(server)}"
    gets(server, path, 20)  # several connections lie idle when it goes
    own_cluster.stop("fast")
    try:
        assert gets(server, path, 5) == [503] * 5
    finally:
        own_cluster.start()
    eventually(lambda: gets(server, "/v1/models", 1) != [503], 20, "the first answer")
    assert gets(server, path, 20) == [200] * 20


def test_the_doctor_minds_a_pool_that_postgresql_has_no_room_for(prepare: Callable[..., Server]) -> None:
    small, large = prepare(HERMES_DATABASE_POOL="30"), prepare(HERMES_DATABASE_POOL="35")
    assert "ok   database  one process opens up to 36 connections, PostgreSQL takes 40" in small.manage("doctor")
    assert "note database  one process opens up to 41 connections, PostgreSQL takes 40 -> Lower" in large.manage(
        "doctor"
    )
