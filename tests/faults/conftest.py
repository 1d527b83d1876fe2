from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.databases import PostgresCluster, find_program, postgres_cluster
from tests.support.migrated_database import Database
from tests.support.ports import free_port
from tests.support.server import Server

MAX_CONNECTIONS = 40  # room for two processes at the default size, and a few for the test itself


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[PostgresCluster]:
    """With few connections, each of them in its log. Tests stop it; others go on using theirs."""
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not on this machine: apt-get install postgresql")
    with postgres_cluster(free_port(), max_connections=str(MAX_CONNECTIONS), log_connections="on") as running:
        yield running


@pytest.fixture(scope="session")
def own_database(own_cluster: PostgresCluster, templates: Path) -> Database:
    return Database(templates, own_cluster)


@pytest.fixture(scope="module")
def prepare(own_database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Servers on that cluster, not started yet."""
    made: list[Server] = []

    def make(**env: str) -> Server:
        made.append(own_database.server(tmp_path_factory.mktemp("home") / "h", Server, **env))
        return made[-1]

    yield make
    for server in made:
        server.kill()
