import gc
import os
import shutil
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.conf import settings
from django.core.cache import cache

from tests.support.checker import check_after_fault, check_every_log
from tests.support.databases import PostgresCluster, find_program, postgres_cluster
from tests.support.forked import Forked
from tests.support.left_out import LeftOut
from tests.support.made_once import made_once
from tests.support.migrated_database import Database, migrated_home
from tests.support.model_stub import ModelStub
from tests.support.node_packages import install_node_client
from tests.support.people import create_key, logged_in_viewer
from tests.support.ports import free_port
from tests.support.providers import Providers
from tests.support.server import Server
from tests.support.staff import Operator, logged_in

collect_ignore = ["model", "cluster/large"]  # `make test-model` and `make test-cluster` name the folders
CHECKED_LOGS = 200  # of one server: all of them took half a minute each time


def pytest_configure(config: pytest.Config) -> None:
    Server.launch = Forked
    config.pluginmanager.register(LeftOut())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The tests stay to the end: the garbage collector need not visit them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not on this machine: apt-get install postgresql")
    with postgres_cluster(free_port()) as running:
        yield running


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one worker makes in this folder, all workers of the run copy."""
    own = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        return own.parent
    return own


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, templates: Path) -> None:
    """The tests in this process begin with a copy too."""
    file = settings.DATABASES["default"]["TEST"].get("NAME")
    if file is not None:
        shutil.copy(migrated_home(templates) / "hermes.sqlite3", file)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """On SQLite; the folder of the file goes with this process."""
    return "NAME" in settings.DATABASES["default"]["TEST"]


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, templates: Path) -> Database:
    cluster = request.getfixturevalue("cluster") if request.param == "postgresql" else None
    return Database(templates, cluster)


@pytest.fixture(scope="session")
def server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not kill it; many of its logs are checked at the end, others in each run."""
    # The pages and the API document name the platform; no test of this server waits for a message.
    platform = {"TEST_FAKE_PLATFORM": "1", "TEST_PLATFORM_POLL_SECS": "10"}
    running = database.server(tmp_path_factory.mktemp("home") / "h", Server, **platform).start()
    yield running
    try:
        check_every_log(running, CHECKED_LOGS)
        assert "Traceback" not in running.log, running.log
    finally:
        running.kill()


@pytest.fixture(scope="session")
def node_client(templates: Path) -> Path:
    """A folder with the SDKs for Node.js, and programs of other names in it."""
    return made_once(templates / "node", install_node_client)


@pytest.fixture(scope="session")
def other_tenant(server: Server) -> str:
    """The key of another tenant of the shared server."""
    return create_key(server, "other-tenant")


@pytest.fixture(scope="session")
def operator(server: Server) -> Iterator[Operator]:
    """The administrator of the shared server, logged in."""
    with logged_in(server) as found:
        yield found


@pytest.fixture(scope="session")
def viewer(server: Server) -> Iterator[Operator]:
    """Staff of the shared server that may only look at responses, logged in."""
    with logged_in_viewer(server) as found:
        yield found


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
def fresh_cache() -> Iterator[None]:
    """For tests of pages in this process: the dashboard keeps its numbers for a while."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(params=["chat_completions", "codex_responses"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture
async def providers(stub: ModelStub) -> AsyncIterator[Providers]:
    made = Providers(stub)
    yield made
    for provider in made.made:
        await provider.aclose()
