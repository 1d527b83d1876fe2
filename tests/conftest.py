from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import Server, check_every_log, copy_home


@pytest.fixture(scope="session")
def migrated_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("template")
    Server(home).manage("migrate", "--verbosity", "0")
    return home


@pytest.fixture(scope="session")
def server(migrated_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not kill it; its logs are all checked at the end."""
    running = Server(copy_home(migrated_home, tmp_path_factory.mktemp("home") / "h")).start()
    yield running
    try:
        assert check_every_log(running) > 0
        assert "Traceback" not in running.log, running.log
    finally:
        running.kill()


@pytest.fixture
def make_server(migrated_home: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Servers of a test's own, to be killed and started again."""
    made: list[Server] = []

    def make(kind: type[Server] = Server, **env: str) -> Server:
        made.append(kind(copy_home(migrated_home, tmp_path / f"home{len(made)}"), **env))
        return made[-1].start()

    yield make
    for server in made:
        server.kill()
