"""An error of the driver that Django does not translate counts as an outage, too."""

import psycopg
import pytest

from responses_app.eventlog.store import EventStore
from responses_app.protocol.errors import StorageUnavailable

pytestmark = pytest.mark.row_locks


def break_at_the_end() -> None:
    """As a server-side cursor does that Django closes after PostgreSQL was stopped."""
    raise psycopg.errors.AdminShutdown("terminating connection due to administrator command")


async def test_a_cursor_that_cannot_be_closed_makes_a_read_wait(postgres_url: str, store: EventStore) -> None:
    with pytest.raises(StorageUnavailable):
        await store.database.read(break_at_the_end)


async def test_a_cursor_that_cannot_be_closed_makes_a_write_wait(postgres_url: str, store: EventStore) -> None:
    with pytest.raises(StorageUnavailable):
        await store.database.write(break_at_the_end)
