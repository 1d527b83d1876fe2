"""On PostgreSQL, appends are stored by one statement without a transaction around it."""

import asyncio
from typing import Any

import pytest
from django.db import connection

from responses_app.eventlog.reading import read_stored
from responses_app.eventlog.store import EventStore
from tests.support.flaky_proxy import WriteCutter
from tests.support.stored_logs import make_response, opening, unexpected

pytestmark = pytest.mark.row_locks


async def noted_statements(store: EventStore) -> list[str]:
    """What the writer executes from now on."""
    seen: list[str] = []

    def note(execute: Any, sql: str, *args: Any) -> Any:
        seen.append(sql)
        return execute(sql, *args)

    def watch() -> None:
        connection.execute_wrappers.append(note)

    await store.database.write(watch)
    seen.clear()
    return seen


async def published(store: EventStore, response_ids: list[str]) -> None:
    async with asyncio.timeout(30):
        for response_id in response_ids:
            while store.tails.of(response_id).newest is None:  # noqa: ASYNC110 - the writer's thread sets it
                await asyncio.sleep(0.01)


async def test_a_batch_of_appends_is_one_statement(postgres_url: str, store: EventStore) -> None:
    rows = [await store.database.write(make_response) for _ in range(3)]
    seen = await noted_statements(store)
    with store.database.writer._arrival:  # they arrive together
        for row in rows:
            store.append(opening(row)[1], store.tails.of(row.pk), unexpected)
    await published(store, [row.pk for row in rows])
    [statement] = seen
    assert statement.startswith("WITH b(response_id")


@pytest.mark.parametrize("is_delivered", [True, False])
async def test_an_append_whose_connection_breaks_is_stored_once(
    cutter: WriteCutter, store: EventStore, is_delivered: bool
) -> None:
    row = await store.database.write(make_response)
    cutter.cut(1, is_delivered=is_delivered)
    store.append(opening(row)[1], store.tails.of(row.pk), unexpected)
    await published(store, [row.pk])
    assert cutter.cuts == 1
    assert len(await store.database.read(read_stored, row.pk)) == 1
