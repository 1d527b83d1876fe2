from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.graph_api import GraphApi, cloud_config
from tests.support.migrated_database import Database
from tests.support.platforms import fake_config
from tests.support.server import Server


@pytest.fixture
def configured_server(database: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Servers with a config.yaml; not started yet."""
    made: list[Server] = []

    def make(config: str, **env: str) -> Server:
        server = database.server(tmp_path / f"home{len(made)}", Server, **env)
        (server.home / "config.yaml").write_text(config)
        made.append(server)
        return server

    yield make
    for server in made:
        server.kill()


@pytest.fixture(scope="module")
def graph() -> Iterator[GraphApi]:
    with GraphApi() as running:
        yield running


@pytest.fixture(scope="module")
def cloud(database: Database, graph: GraphApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with WhatsApp by the Cloud API, for tests that do not kill it."""
    server = database.server(tmp_path_factory.mktemp("home") / "h", Server)
    (server.home / "config.yaml").write_text(cloud_config(graph, reply_prefix=""))
    yield server.start()
    try:
        assert "Traceback" not in server.log, server.log
    finally:
        server.kill()


@pytest.fixture(scope="module")
def chatty(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the fake platform, for tests that do not kill it."""
    server = database.server(tmp_path_factory.mktemp("home") / "h", Server)
    (server.home / "config.yaml").write_text(fake_config())
    yield server.start()
    try:
        assert "Traceback" not in server.log, server.log
    finally:
        server.kill()
