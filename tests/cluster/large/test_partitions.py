"""Partitions: one worker without PostgreSQL, and all processes without Redis, over links that lose every packet."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checker import check_log
from tests.support.cluster import Cluster, DistantWorker, RedisServer, redis_server
from tests.support.databases import postgres_cluster
from tests.support.migrated_database import Database
from tests.support.network import HERE, THERE, Namespace, can_make_namespaces, namespace
from tests.support.ports import free_port
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces need root and iproute2"),
    pytest.mark.xdist_group("namespace"),
]
GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


@pytest.fixture
def link() -> Iterator[Namespace]:
    with namespace(sys.executable) as running:
        yield running


def test_a_worker_without_postgresql_loses_its_turn_to_another_and_writes_nothing(
    link: Namespace, redis: RedisServer, templates: Path, tmp_path: Path
) -> None:
    with postgres_cluster(free_port(), listen_addresses=f"127.0.0.1,{HERE}") as postgres:
        postgres.trust(THERE)
        cluster = Cluster(Database(templates, postgres), tmp_path / "home", redis)
        try:
            check_takeover(cluster, link)
        finally:
            cluster.stop()


def check_takeover(cluster: Cluster, link: Namespace) -> None:
    url = cluster.first.env["DATABASE_URL"].replace("127.0.0.1", HERE)
    DistantWorker.launch = staticmethod(link.launch)
    distant = cluster.member(DistantWorker, DATABASE_URL=url, HERMES_DATABASE_TIMEOUT="2")
    web = cluster.web()
    response_id = web.openai().responses.create(model="hermes-agent", input=GATED, background=True).id
    eventually(lambda: text(web.body(response_id)) == "before ")
    cluster.worker()
    link.cut()
    eventually(lambda: stored_rows(web, "response", "attempt", id=response_id) == [(2,)], 30, "the takeover")
    web.open_gate("go")
    body = web.ended(response_id)
    link.join()
    eventually(lambda: "was overtaken" in distant.log, 40, "the end of the first attempt")
    assert text(body) == "before after"
    assert web.body(response_id) == body
    check_log(web, response_id)


def test_processes_without_redis_go_on_and_follow_it_again(
    link: Namespace, make_cluster: Callable[..., Cluster]
) -> None:
    program = shutil.which("redis-server")
    assert program is not None
    with redis_server(host=THERE, prefix=link.command()) as distant:
        cluster = make_cluster(REDIS_URL=distant.url)
        cluster.worker()
        web = cluster.web()
        run_a_turn(web, "joined")
        link.cut()
        run_a_turn(web, "cut")
        link.join()
        run_a_turn(web, "again")
        eventually(lambda: distant.subscribers() == 2, 60, "the subscriptions")


def run_a_turn(web: Server, name: str) -> None:
    asked = script({"say": "before "}, {"gate": name}, {"say": "after"})
    with streaming(web, model="hermes-agent", input=asked) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ", 20)
        web.open_gate(name)
        assert list(received)[-1] == b"data: [DONE]\n\n"
    check_log(web, response_id)
