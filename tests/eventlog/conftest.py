import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from responses_app.database import Database as OwnDatabase
from responses_app.eventlog.store import EventStore
from tests.support.flaky_proxy import WriteCutter
from tests.support.migrated_database import TEMPLATE, Database
from tests.support.own_connection import connected_to, use

_numbers = count(1)


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    running = EventStore(OwnDatabase())
    running.database.writer.start(asyncio.get_running_loop())
    yield running
    await asyncio.to_thread(running.database.close)


@pytest.fixture
def postgres_url(database: Database, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """This process uses a database of its own on the PostgreSQL server of the suite."""
    assert database.cluster is not None
    name = f"in_process_{next(_numbers)}"
    database.cluster.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    url = database.cluster.url(name)
    with django_db_blocker.unblock(), connected_to(url):
        yield url


@pytest.fixture
def cutter(database: Database, postgres_url: str) -> Iterator[WriteCutter]:
    """The connections of this process go through a proxy that can cut them."""
    assert database.cluster is not None
    with WriteCutter(database.cluster.port) as running:
        settings = connections.settings["default"]
        use({**settings, "PORT": running.port})
        try:
            yield running
        finally:
            use(settings)
