"""What operators see of a cluster, and how they take a process out."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.cluster import Cluster, WorkerProcess
from tests.support.people import create_key
from tests.support.server import Server, eventually, script, server_beside, text
from tests.support.stored_rows import stored_rows

GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


def detailed(server: Server) -> dict[str, Any]:
    with server.http() as client:
        body: dict[str, Any] = client.get("/health/detailed").json()
        return body


def begin(server: Server) -> str:
    response_id = str(server.openai().responses.create(model="hermes-agent", input=GATED, background=True).id)
    eventually(lambda: text(server.body(response_id)) == "before ")
    return response_id


def test_health_and_doctor_report_the_whole_cluster(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(HERMES_MAX_CONCURRENT="1")
    worker = cluster.worker()
    web = cluster.web()
    begin(web)
    web.openai().responses.create(model="hermes-agent", input=GATED, background=True)
    for member in (web, worker):
        found = eventually(partial(reported, member), what="the heartbeats of both")
        assert found["versions"] == ["0.1.0"]
        [queue] = found["queue_by_owner"]
        assert (queue["owner"], queue["queued"]) == ("admin", 1)
    assert "1 web, 1 worker; versions 0.1.0; 1 leases held, 0 expired; 1 queued" in web.manage("doctor", "--offline")


def test_the_queues_of_owners_are_shown_to_operators_alone(
    make_cluster: Callable[..., Cluster],
) -> None:
    web = make_cluster().web()
    with web.http() as operator, web.http(create_key(web, "tenant")) as tenant:
        assert operator.get("/health/detailed").json()["cluster"]["queue_by_owner"] == []
        seen = tenant.get("/health/detailed").json()["cluster"]
        assert (seen["queue_by_owner"], seen["roles"]) == (None, {"web": 1})
        assert tenant.get("/metrics").status_code == 200


def reported(server: Server) -> dict[str, Any] | None:
    found: dict[str, Any] = detailed(server)["cluster"]
    is_whole = found["roles"] == {"web": 1, "worker": 1} and found["leases_held"] == 1
    return found if is_whole else None


def test_a_drained_worker_finishes_its_turn_takes_no_other_and_exits(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(HERMES_SHUTDOWN_GRACE="0")
    drained = cluster.worker()
    web = cluster.web()
    first = begin(web)
    assert drained.process is not None
    pid = drained.process.pid
    [(host,)] = stored_rows(web, "runtimeprocess", "host", pid=pid)
    web.manage("drain", f"{host}:{pid}")
    eventually(lambda: stored_rows(web, "runtimeprocess", "is_draining", pid=pid) == [(1,)])
    cluster.worker()
    second = begin(web)
    [(owner,)] = stored_rows(web, "runtimeprocess", "id", pid=pid)
    assert stored_rows(web, "response", "lease_owner", id=first) == [(owner,)]
    assert stored_rows(web, "response", "lease_owner", id=second) != [(owner,)]
    web.open_gate("go")
    assert web.ended(first)["status"] == web.ended(second)["status"] == "completed"
    assert drained.process.wait(20) == 0
    assert stored_rows(web, "response", "attempt", id=first) == [(1,)]


def test_an_unknown_process_is_not_drained(make_cluster: Callable[..., Cluster]) -> None:
    web = make_cluster().web()
    refused = web.managed("drain", "elsewhere:1")
    assert b"No running process is 'elsewhere:1'. These run: " in refused.stderr


def test_a_process_with_other_settings_is_named(make_cluster: Callable[..., Cluster]) -> None:
    """It would judge the others by its own lease, and continue their turns with its own profiles."""
    cluster = make_cluster()
    web = cluster.web()
    assert "other settings" not in web.manage("doctor", "--offline")
    pid = web.process and web.process.pid
    worker = cluster.worker(HERMES_LEASE_SECS="3")
    assert re.search(rf"Processes with other settings run: web \S+:{pid}\.", worker.log)
    assert re.search(
        r"1 processes have other settings than this one: worker \S+:\d+", web.manage("doctor", "--offline")
    )


@pytest.mark.parametrize("name", ["secret_key", "api_key"])
def test_a_process_with_other_secrets_is_refused(make_cluster: Callable[..., Cluster], name: str) -> None:
    cluster = make_cluster()
    web = cluster.web()
    eventually(lambda: stored_rows(web, "runtimeprocess", "id"))
    home = cluster.home.parent / "other"
    other = server_beside(web, home, WorkerProcess, REDIS_URL=cluster.redis.url)
    (home / name).write_text("another-secret-of-enough-characters-for-all\n")
    refused = other.managed("runworker", "generate")
    assert refused.returncode == 1
    assert b"runs on the same database with other secrets" in refused.stderr
