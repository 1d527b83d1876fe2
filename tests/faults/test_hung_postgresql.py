"""PostgreSQL that accepts everything and answers nothing: named, and nothing is lost or done twice."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.checker import History, Seen, check_all
from tests.support.databases import PostgresCluster
from tests.support.flaky_proxy import Stall
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)

LIMIT_SECS = "2"
PATIENCE_SECS = 20.0  # of a client on a busy machine; without a limit no answer comes at all
HEALTH_SECS = 5.0  # a probe waits 1.5 s for the database
MAX_THREADS = 40  # of the server and its libraries; one for each request would be more
ASKED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


@pytest.fixture
def prepared(prepare: Callable[..., Server]) -> Iterator[Server]:
    made = prepare(HERMES_DATABASE_TIMEOUT=LIMIT_SECS)
    yield made
    made.kill()


def reading(server: Server, client: Seen) -> threading.Thread:
    """A client that has read the first words of a stream."""
    thread = threading.Thread(target=client.read, args=(server, {"input": ASKED}), daemon=True)
    thread.start()
    eventually(lambda: any(b"before " in frame for frame in client.frames))
    return thread


def refused(http: httpx.Client, method: str, path: str, **options: object) -> None:
    answer = http.request(method, path, timeout=PATIENCE_SECS, **options)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable"), answer.text
    assert answer.headers["retry-after"] == "1"


def check_health(http: httpx.Client) -> None:
    """Every route for monitors answers, and names what is not known."""
    proxied = {"X-Forwarded-For": "192.0.2.1"}  # needs a key: root's is known without the database

    def get(path: str, headers: dict[str, str]) -> httpx.Response:
        return http.get(path, headers=headers, timeout=HEALTH_SECS)

    with ThreadPoolExecutor() as monitors:  # each waits for the database
        health = monitors.submit(get, "/health", {})
        detailed = monitors.submit(get, "/health/detailed", {})
        proxied_health = monitors.submit(get, "/health/detailed", proxied)
        status = monitors.submit(get, "/api/status", {})
        metrics = monitors.submit(get, "/metrics", {})
    assert health.result().status_code == 200
    found = detailed.result().json()
    assert (found["status"], found["work"], found["processes"]) == ("degraded", None, None)
    assert "state_db" in found["degraded"]
    assert "answer" in found["readiness"]["checks"]["state_db"]["error"]
    assert proxied_health.result().status_code == 200
    assert status.result().json()["active_sessions"] is None
    assert 'hermes_responses_open{state="running"} NaN' in metrics.result().text


def threads_of(server: Server) -> int:
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def finish(server: Server, history: History, client: Seen, thread: threading.Thread) -> None:
    """The database is back: the stream goes on to its end, and nothing was lost or done twice."""
    server.open_gate("go")
    thread.join(30)
    assert client.cut is None
    assert client.frames[-1] == b"data: [DONE]\n\n"
    assert client.response_id is not None
    assert text(server.body(client.response_id)) == "before after"
    assert check_all(server, history) == len(history.seen)
    assert "Traceback" not in server.log


def test_a_hung_postgresql_is_noticed_and_named(prepared: Server, own_cluster: PostgresCluster) -> None:
    server, history = prepared.start(), History()
    client = history.client()
    thread = reading(server, client)
    with server.http() as http:
        with own_cluster.hung():
            check_health(http)
            refused(http, "POST", "/v1/responses", json={"input": "while it hangs"})
            refused(http, "GET", f"/v1/responses/{client.response_id}")
            check_health(http)
            for _ in range(20):  # 40 s, if each of them waited again
                refused(http, "POST", "/v1/responses", json={"input": "known to hang"})
            with ThreadPoolExecutor(60) as clients:
                for found in [clients.submit(refused, http, "GET", "/v1/models") for _ in range(60)]:
                    found.result()
            eventually(lambda: threads_of(server) <= MAX_THREADS, 20, "the end of the request threads")
            assert "fail because the database is unavailable: PostgreSQL has not answered for 2 s" in server.log
            assert server.log.count("fail because the database is unavailable") <= 2  # at most one in ten seconds
            assert "Service Unavailable" not in server.log
        eventually(lambda: http.get("/health/detailed").json()["status"] == "ok", 20, "health after the hang")
    finish(server, history, client, thread)


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_black_hole_at_a_commit_loses_and_repeats_nothing(
    prepared: Server, own_cluster: PostgresCluster, is_delivered: bool
) -> None:
    """The answer is held back, or the COMMIT itself, which arrives after the server gave up on it."""
    server, history = prepared, History()
    with Stall(own_cluster.port) as stall:
        direct = server.env["DATABASE_URL"]
        server.env["DATABASE_URL"] = direct.replace(f":{own_cluster.port}/", f":{stall.port}/")
        server.start()
        client = history.client()
        thread = reading(server, client)
        stall.hold_at_commit(is_delivered=is_delivered)
        server.open_gate("go")
        eventually(lambda: stall.is_holding_commit, PATIENCE_SECS, "a COMMIT of events")
        with server.http() as http:
            refused(http, "POST", "/v1/responses", json={"input": "into the hole"})
            refused(http, "GET", f"/v1/responses/{client.response_id}")
            check_health(http)
        eventually(lambda: "takes no writes" in server.log, PATIENCE_SECS, "the limit of the COMMIT")
        assert not any(b"after" in frame for frame in client.frames)  # nothing is sent before it is stored
        stall.release()
        finish(server, history, client, thread)


def test_a_slow_statement_is_ended_without_an_outage(prepared: Server, own_cluster: PostgresCluster) -> None:
    """The server lives: what waits too long for a lock is refused, and everything else goes on."""
    server = prepared.start()
    with server.http() as http, psycopg.connect(server.env["DATABASE_URL"]) as blocker:
        response_id = http.post("/v1/responses", json={"input": "x"}).json()["id"]
        blocker.execute("LOCK TABLE responses_app_inputitem IN ACCESS EXCLUSIVE MODE")
        refused(http, "GET", f"/v1/responses/{response_id}/input_items")
        assert http.get(f"/v1/responses/{response_id}").status_code == 200
        running = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        assert server.query(running) == [(0,)]  # it is cancelled, not left behind
    assert "has not answered" not in server.log


def test_the_doctor_names_a_hung_postgresql(prepared: Server, own_cluster: PostgresCluster) -> None:
    with own_cluster.hung():
        found = prepared.managed("doctor", "--offline")
    assert found.returncode == 1
    assert b"FAIL database  postgresql: " in found.stdout
    assert b"timeout expired" in found.stdout
