"""A rolling upgrade: processes of the version before workers existed, and of this one, on one database.

The older version keeps running and streaming while this one migrates, joins, and takes over.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.checker import check_log
from tests.support.cluster import SHORT_LEASES, RedisServer, WorkerProcess
from tests.support.databases import PostgresCluster
from tests.support.migrated_database import Database
from tests.support.older_tree import server_of, unpacked
from tests.support.scripted_requests import call
from tests.support.server import Server, created_id, eventually, frames, script, streaming, text
from tests.support.stored_rows import stored_rows

OLDER = "070fe84"  # without workers, Redis and the columns for them
DONE = b"data: [DONE]\n\n"
pytestmark = pytest.mark.timeout(300)


class Versions:
    """One database and one home; servers of both versions."""

    def __init__(self, older: type[Server], postgres: PostgresCluster, redis: RedisServer, home: Path) -> None:
        postgres.execute("DROP DATABASE IF EXISTS rolling WITH (FORCE)")
        postgres.execute("CREATE DATABASE rolling")
        home.mkdir()
        self._env = {"DATABASE_URL": postgres.url("rolling"), **SHORT_LEASES, "HERMES_SHUTDOWN_GRACE": "0"}
        self._redis_url = redis.url
        self._older = older
        self._home = home
        self.started: list[Server] = []

    def migrate_older(self) -> None:
        self._older(self._home, **self._env).manage("migrate", "--verbosity", "0")

    def migrate(self) -> None:
        Server(self._home, **self._env).manage("migrate", "--verbosity", "0")

    def older(self) -> Server:
        return self._start(self._older(self._home, **self._env))

    def web(self) -> Server:
        return self._start(Server(self._home, **self._env, REDIS_URL=self._redis_url))

    def worker(self) -> Server:
        worker = WorkerProcess(self._home, **self._env, REDIS_URL=self._redis_url)
        worker.env["HERMES_WORKER_PORT"] = str(worker.port)
        return self._start(worker)

    def _start(self, server: Server) -> Server:
        server.log_path = self._home / f"server{len(self.started)}.log"
        self.started.append(server)
        return server.start()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> type[Server]:
    tree = unpacked(OLDER, tmp_path_factory.mktemp("older"))
    if tree is None:
        pytest.skip(f"the history of this tree has no {OLDER}: a clone with all of it runs this")
    return server_of(tree)


@pytest.fixture
def versions(older: type[Server], database: Database, redis: RedisServer, tmp_path: Path) -> Iterator[Versions]:
    assert database.cluster is not None
    made = Versions(older, database.cluster, redis, tmp_path / "home")
    yield made
    for server in made.started:
        server.kill()


def gated(name: str) -> str:
    return script({"say": "before "}, {"gate": name}, {"say": "after"})


def begin(server: Server, name: str) -> str:
    made = server.openai().responses.create(model="hermes-agent", input=gated(name), background=True)
    eventually(lambda: text(server.body(made.id)) == "before ", 20, "the first word")
    return str(made.id)


@contextmanager
def reading(server: Server, response_id: str) -> Iterator[Iterator[bytes]]:
    path = f"/v1/responses/{response_id}"
    with server.http() as client, client.stream("GET", path, params={"stream": "true"}) as answer:
        assert answer.status_code == 200, answer.read()
        yield frames(answer)


def write_logs(server: Server) -> dict[str, list[bytes]]:
    """What an older version stores of some turns, as its clients read it."""
    client = server.openai()
    asked = (
        script({"think": "hm "}, {"say": "one "}, call("effect", text="once", secs=0)),
        "write 40 words at 500 words per second",
        script({"say": "some "}, {"fail": "the model broke"}),
    )
    logs = {}
    for request in asked:
        made = client.responses.create(model="hermes-agent", input=request)
        logs[made.id] = server.replay(made.id)
    return logs


def test_logs_of_the_older_version_are_read_and_continued(versions: Versions) -> None:
    versions.migrate_older()
    older = versions.older()
    logs = write_logs(older)
    older.kill(signal.SIGTERM)
    versions.migrate()
    versions.worker()
    web = versions.web()
    for response_id, log in logs.items():
        assert web.replay(response_id) == log
        check_log(web, response_id)
        again = web.openai().responses.create(model="hermes-agent", input="again", previous_response_id=response_id)
        assert again.status == "completed"
        check_log(web, again.id)


def test_two_versions_serve_side_by_side_while_one_replaces_the_other(versions: Versions) -> None:
    versions.migrate_older()
    older, other = versions.older(), versions.older()
    with streaming(older, model="hermes-agent", input=gated("first")) as (_, received):
        first = created_id(next(received))
        versions.migrate()
        other.kill(signal.SIGTERM)
        other.start()  # one that is started again meets the new tables
        worker, web = versions.worker(), versions.web()
        check_streams_cross(older, other, web)
        with reading(web, first) as also_received:
            older.open_gate("first")
            assert list(received)[-1] == list(also_received)[-1] == DONE
    check_turns_move(older, other, web, worker)


def check_streams_cross(older: Server, other: Server, web: Server) -> None:
    """Each version reads, live and afterwards, what the other has taken."""
    for source, readers in ((older, (web, other)), (web, (older, other))):
        gate = f"crossing-{source.port}"
        response_id = begin(source, gate)
        with reading(readers[0], response_id) as first, reading(readers[1], response_id) as second:
            source.open_gate(gate)
            received = list(first)
            assert received == list(second)
        assert received == source.replay(response_id)
        assert text(web.ended(response_id)) == "before after"
        check_log(web, response_id)


def check_turns_move(older: Server, other: Server, web: Server, worker: Server) -> None:
    """The older processes leave with turns under way; these go on in the new ones, and streams with them."""
    moved = begin(older, "moving")
    with reading(web, moved) as received:
        older.kill(signal.SIGTERM)
        other.kill(signal.SIGTERM)
        eventually(lambda: is_held_by(web, moved, worker), 30, "the claim by the worker")
        web.open_gate("moving")
        assert list(received)[-1] == DONE
    assert text(web.ended(moved)) == "before after"
    check_log(web, moved)


def is_held_by(server: Server, response_id: str, holder: Server) -> bool:
    assert holder.process is not None
    [(owner,)] = stored_rows(server, "response", "lease_owner", id=response_id)
    return stored_rows(server, "runtimeprocess", "pid", id=owner) == [(holder.process.pid,)]
