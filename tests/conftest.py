from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.checker import check_after_fault, check_every_log
from tests.support.databases import PostgresCluster, find_program, postgres_cluster
from tests.support.forked import Forked
from tests.support.left_out import LeftOut
from tests.support.model_stub import ModelStub
from tests.support.providers import Cast
from tests.support.server import Server, copy_home, free_port

CHECKED_LOGS = 200  # of one server: all of them took half a minute each time


class Database:
    """Makes servers, each on a migrated database of its own."""

    def __init__(self, template: Path, cluster: PostgresCluster | None) -> None:
        self.template = template
        self.cluster = cluster
        self.made = 0
        self.env: dict[str, str] = {}
        if cluster is not None:
            cluster.execute("CREATE DATABASE template_home")
            self.env = {"DATABASE_URL": cluster.url("template_home")}
        Server(template, **self.env).manage("migrate", "--verbosity", "0")

    def server(self, home: Path, kind: type[Server], **env: str) -> Server:
        self.made += 1
        if self.cluster is not None:
            name = f"home_{self.made}"
            self.cluster.execute(f"CREATE DATABASE {name} TEMPLATE template_home")
            env = {"DATABASE_URL": self.cluster.url(name), **env}
        return kind(copy_home(self.template, home), **env)


def pytest_configure(config: pytest.Config) -> None:
    Server.launch = Forked
    config.pluginmanager.register(LeftOut())


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not on this machine: apt-get install postgresql")
    with postgres_cluster(free_port()) as running:
        yield running


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Database:
    cluster = request.getfixturevalue("cluster") if request.param == "postgresql" else None
    return Database(tmp_path_factory.mktemp("template"), cluster)


@pytest.fixture(scope="session")
def server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not kill it; many of its logs are checked at the end, others in each run."""
    running = database.server(tmp_path_factory.mktemp("home") / "h", Server).start()
    yield running
    try:
        check_every_log(running, CHECKED_LOGS)
        assert "Traceback" not in running.log, running.log
    finally:
        running.kill()


@pytest.fixture
def make_server(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Servers of a test's own, to be killed and started again."""
    made: list[Server] = []

    def make(kind: type[Server] = Server, **env: str) -> Server:
        made.append(database.server(tmp_path / f"home{len(made)}", kind, **env))
        return made[-1].start()

    yield make
    try:
        for server in made if request.node.get_closest_marker("fault") else ():
            check_after_fault(server)
    finally:
        for server in made:
            server.kill()


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(params=["chat_completions", "codex_responses"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture
async def cast(stub: ModelStub) -> AsyncIterator[Cast]:
    made = Cast(stub)
    yield made
    for provider in made.made:
        await provider.aclose()
