import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checker import check_after_fault
from tests.support.cluster import Cluster, RedisServer, redis_server
from tests.support.hosts import Hosts
from tests.support.migrated_database import Database


@pytest.fixture(scope="session", params=["postgresql"])
def database(request: pytest.FixtureRequest, templates: Path) -> Database:
    """Several machines need a database server."""
    return Database(templates, request.getfixturevalue("cluster"))


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not on this machine: apt-get install redis-server")
    with redis_server() as running:
        yield running


@pytest.fixture
def make_cluster(
    request: pytest.FixtureRequest, database: Database, redis: RedisServer, tmp_path: Path
) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(**env: str) -> Cluster:
        made.append(Cluster(database, tmp_path / f"home{len(made)}", redis, **env))
        return made[-1]

    yield make
    try:
        for cluster in made if request.node.get_closest_marker("fault") else ():
            if cluster.webs[0].is_running:
                check_after_fault(cluster.webs[0])
    finally:
        for cluster in made:
            cluster.stop()


@pytest.fixture
def hosts(database: Database, tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(database, tmp_path)
    yield made
    made.stop()
