"""Web processes, workers and processes for pages: where turns run, and what each of them serves."""

import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from gateway_app.runtime.roles import WORKERLESS_SECS
from tests.support.checker import check_log
from tests.support.cluster import Cluster
from tests.support.people import create_key
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows

GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


def test_a_turn_runs_in_a_worker_and_is_streamed_by_the_web_process(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    web = cluster.web()
    with streaming(web, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        assert role_of_owner(web, response_id) == "worker"
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def test_an_unstored_turn_runs_in_the_process_that_admitted_it(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    web = cluster.web()
    with streaming(web, model="hermes-agent", input=GATED, store=False) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: stored_rows(web, "response", "attempt", id=response_id) == [(1,)])
        assert role_of_owner(web, response_id) == "web"
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"


def test_a_web_process_runs_turns_from_two_seconds_after_the_last_worker_until_one_is_back(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    worker = cluster.worker()
    web = cluster.web()
    assert "workers" not in detailed(web)["degraded"]
    worker.kill()
    killed_at = time.monotonic()
    response_id = background(web)
    eventually(lambda: owners(web, [response_id]) != [None], what="the claim by the web process")
    assert time.monotonic() - killed_at >= WORKERLESS_SECS
    assert role_of_owner(web, response_id) == "web"
    assert "workers" in detailed(web)["degraded"]
    web.open_gate("go")
    assert web.ended(response_id)["status"] == "completed"
    cluster.worker()
    eventually(lambda: runs_in_worker(web), what="a turn of the worker")
    assert all(runs_in_worker(web) for _ in range(3))
    assert "workers" not in detailed(web)["degraded"]


def runs_in_worker(web: Server) -> bool:
    """A web process sees with its next sweep that a worker is back."""
    asked = script({"say": "before "}, {"gate": "again"})
    response_id = str(web.openai().responses.create(model="hermes-agent", input=asked, background=True).id)
    eventually(lambda: owners(web, [response_id]) != [None])
    role = role_of_owner(web, response_id)
    web.openai().responses.cancel(response_id)
    web.ended(response_id)
    return role == "worker"


def test_workers_share_the_turns_of_one_owner_and_keep_slots_for_others(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(HERMES_MAX_CONCURRENT="4", HERMES_LEASE_SECS="60")
    workers = [cluster.worker(), cluster.worker()]
    web = cluster.web()
    tenant = create_key(web, "tenant")
    ids = [background(web) for _ in range(8)]
    eventually(lambda: owners(web, ids).count(None) == 2, 20)
    ids.append(background(web, tenant))
    eventually(lambda: owners(web, ids)[-1], 20)
    shares = Counter(owners(web, ids[:-1]))
    # Two wait: one owner has at most three slots of four.
    assert sorted(shares.values()) == [2, 3, 3]
    assert {role_of_owner(web, response_id) for response_id in running(web, ids)} == {"worker"}
    workers[0].open_gate("go")
    of_tenant = ids.pop()
    eventually(lambda: web.openai(tenant).responses.retrieve(of_tenant).status == "completed")
    assert {web.ended(response_id)["status"] for response_id in ids} == {"completed"}


def test_a_worker_that_is_stopped_leaves_its_turn_to_another(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(HERMES_SHUTDOWN_GRACE="0")
    first = cluster.worker()
    web = cluster.web()
    response_id = background(web)
    eventually(lambda: text(web.body(response_id)) == "before ")
    cluster.worker()
    first.kill(signal.SIGTERM)
    web.open_gate("go")
    body = web.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "before after")
    assert stored_rows(web, "response", "attempt", "crashes", id=response_id) == [(2, 0)]
    check_log(web, response_id)


def test_a_worker_has_health_and_metrics_on_a_port_of_its_own_and_no_api(make_cluster: Callable[..., Cluster]) -> None:
    worker = make_cluster().worker()
    with worker.http() as client:
        assert client.get("/health").status_code == 200
        assert b"hermes" in client.get("/metrics").content
        assert client.get("/health/detailed").json()["readiness"]["checks"]["workers"]["dispatch"] == "workers"
        refused = client.post("/v1/responses", json={"input": "hello"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")


def test_a_process_for_pages_reads_and_refuses_to_generate(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    web = cluster.web()
    web.open_gate("go")
    response_id = background(web)
    web.ended(response_id)
    pages = cluster.web(HERMES_DISPATCH="none", GATEWAY_HEALTH_URL=web.url)
    assert text(pages.body(response_id)) == "before after"
    with pages.http() as client:
        refused = client.post("/v1/responses", json={"input": "hello"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "generation_off")


def test_a_process_for_pages_shows_the_gateway_that_it_watches(make_cluster: Callable[..., Cluster]) -> None:
    gateway = make_cluster(HERMES_DISPATCH="inprocess").web()
    pages = make_cluster(HERMES_DISPATCH="none", GATEWAY_HEALTH_URL=gateway.url).web(GATEWAY_HEALTH_KEY=gateway.key)
    assert gateway.process is not None
    gateway_pid = gateway.process.pid
    with pages.http() as client:
        eventually(lambda: client.get("/api/status").json()["gateway_is_remote"])
        assert client.get("/api/status").json()["gateway_pid"] == gateway_pid


def background(server: Server, key: str | None = None) -> str:
    responses = server.openai(key).responses
    return str(responses.create(model="hermes-agent", input=GATED, background=True).id)


def owners(server: Server, ids: list[str]) -> list[str | None]:
    found = dict(stored_rows(server, "response", "id", "lease_owner"))
    return [found[response_id] or None for response_id in ids]


def running(server: Server, ids: list[str]) -> list[str]:
    found = zip(ids, owners(server, ids), strict=True)
    return [response_id for response_id, owner in found if owner]


def role_of_owner(server: Server, response_id: str) -> str:
    [(owner,)] = stored_rows(server, "response", "lease_owner", id=response_id)
    [(role,)] = stored_rows(server, "runtimeprocess", "role", id=owner)
    return str(role)


def detailed(server: Server) -> dict[str, Any]:
    with server.http() as client:
        body: dict[str, Any] = client.get("/health/detailed").json()
        return body
