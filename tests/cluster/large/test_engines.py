"""PostgreSQL that is restarted, fails over or is pooled: nothing seen is lost, and no process needs a restart."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from responses_app.eventlog.availability import was_committed
from tests.support.checker import check_log
from tests.support.cluster import Cluster, RedisServer
from tests.support.databases import PostgresCluster, postgres_cluster
from tests.support.migrated_database import Database
from tests.support.own_connection import connected_to
from tests.support.pgbouncer import pgbouncer
from tests.support.ports import free_port
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.standby import synchronous_standby

pytestmark = pytest.mark.fault
HAS_PGBOUNCER = shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists()


@pytest.fixture
def postgres() -> Iterator[PostgresCluster]:
    with postgres_cluster(free_port()) as running:
        yield running


@pytest.fixture
def web(postgres: PostgresCluster, redis: RedisServer, templates: Path, tmp_path: Path) -> Iterator[Server]:
    cluster = Cluster(Database(templates, postgres), tmp_path / "home", redis)
    try:
        cluster.worker()
        yield cluster.web()
    finally:
        cluster.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_postgresql_loses_nothing(web: Server, postgres: PostgresCluster, mode: str) -> None:
    asked = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
    with streaming(web, model="hermes-agent", input=asked) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        postgres.stop(mode)
        postgres.start()
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def test_a_failover_to_a_synchronous_standby_loses_nothing(web: Server, postgres: PostgresCluster) -> None:
    asked = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
    with synchronous_standby(postgres) as standby:
        with streaming(web, model="hermes-agent", input=asked) as (_, received):
            response_id = created_id(next(received))
            eventually(lambda: text(web.body(response_id)) == "before ")
            postgres.stop("immediate")
            standby.promote_at(postgres.port)
            web.open_gate("go")
            assert list(received)[-1] == b"data: [DONE]\n\n"
        assert text(web.ended(response_id)) == "before after"
        check_log(web, response_id)
    postgres.start()  # its fixture stops it


def test_a_standby_does_not_decide_whether_a_commit_was_stored(
    postgres: PostgresCluster, django_db_blocker: DjangoDbBlocker
) -> None:
    """It may be behind, and the server that took the commit may come back."""
    with synchronous_standby(postgres) as standby:
        with django_db_blocker.unblock(), connected_to(standby.url("postgres")):
            assert was_committed(2**31) is None
        with django_db_blocker.unblock(), connected_to(postgres.url("postgres")):
            assert was_committed(2**31) is False


@pytest.mark.skipif(not HAS_PGBOUNCER, reason="PgBouncer is not on this machine: apt-get install pgbouncer")
def test_a_cluster_works_behind_pgbouncer_in_transaction_mode(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(HERMES_DATABASE_POOLER="transaction")
    direct = cluster.first.env["DATABASE_URL"]
    port = int(direct.rpartition(":")[2].partition("/")[0])
    with pgbouncer(port) as pooled_port:
        pooled = direct.replace(f":{port}/", f":{pooled_port}/")
        cluster.env["DATABASE_URL"] = pooled
        cluster.worker()
        web = cluster.web()
        web.open_gate("go")
        ids = []
        for _ in range(20):
            asked = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
            ids.append(web.openai().responses.create(model="hermes-agent", input=asked, background=True).id)
        for response_id in ids:
            assert text(web.ended(response_id)) == "before after"
            check_log(web, response_id)
        web.manage("export_responses")
        assert "Traceback" not in web.log
        cluster.stop()
