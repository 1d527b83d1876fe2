import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import dj_database_url
import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from responses_app.database import Database as OwnDatabase
from responses_app.eventlog.store import EventStore
from tests.support.flaky_proxy import WriteCutter
from tests.support.migrated_database import TEMPLATE, Database

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
    with django_db_blocker.unblock():
        before = connections.settings["default"]
        parsed = {**dj_database_url.parse(url), "ENGINE": "responses_app.postgresql"}
        _use(connections.configure_settings({"default": parsed})["default"])
        try:
            yield url
        finally:
            _use(before)


@pytest.fixture
def cutter(database: Database, postgres_url: str) -> Iterator[WriteCutter]:
    """The connections of this process go through a proxy that can cut them."""
    assert database.cluster is not None
    with WriteCutter(database.cluster.port) as running:
        settings = connections.settings["default"]
        _use({**settings, "PORT": running.port})
        try:
            yield running
        finally:
            _use(settings)


def _use(settings: dict[str, object]) -> None:
    connections["default"].close()
    connections.settings["default"] = settings
    del connections["default"]  # the wrapper of this thread; others make theirs when they start
