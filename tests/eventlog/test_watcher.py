"""One watcher per process: many waiting readers cost one query, and accessed_at follows every reader."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from responses_app.database import READ_THREADS, Database
from responses_app.eventlog import LogErased, Numbering, Segment
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.store import EventStore
from responses_app.models import EventSegment, Response
from tests.support.event_logs import (
    ending,
    make_response,
    opening,
    store_log,
    watch_statements,
    word,
)

pytestmark = pytest.mark.django_db(transaction=True)
READERS = 100
SEGMENTS = "responses_app_eventsegment"
LONG_AGO = timezone.now() - timedelta(days=1)


class Reader:
    """Reads one log in a task of its own."""

    def __init__(self, store: EventStore, response_id: str, position: int = -1) -> None:
        self.position = position
        self.is_over = False
        self.task = asyncio.create_task(self._read(store, response_id))

    async def _read(self, store: EventStore, response_id: str) -> None:
        async for segments in store.read_after(response_id, self.position, 60):
            self.position = segments[-1].last_position if segments else self.position
        self.is_over = True


async def until(is_true: Callable[[], bool], timeout_secs: float = 30) -> None:
    async with asyncio.timeout(timeout_secs):
        while not is_true():  # noqa: ASYNC110 -- the database has no event to wait for
            await asyncio.sleep(0.01)


async def until_stored(is_true: Callable[[], Awaitable[bool]], timeout_secs: float = 30) -> None:
    async with asyncio.timeout(timeout_secs):
        while not await is_true():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def make_opened() -> tuple[Response, Numbering]:
    row = make_response(accessed_at=LONG_AGO)
    numbering = Numbering(row.pk, 0)
    insert_fenced([opening(numbering)])
    return row, numbering


def make_many_opened() -> list[tuple[Response, Numbering]]:
    first = make_response()
    rows = [first]
    for turn in range(first.turn + 1, first.turn + READERS):
        shared = {"owner_id": first.owner_id, "session_id": first.session_id, "status": first.status}
        rows.append(Response(turn=turn, model="m", on_disconnect=first.on_disconnect, **shared))
    Response.objects.bulk_create(rows[1:])
    logs = [(row, Numbering(row.pk, 0)) for row in rows]
    insert_fenced([opening(numbering) for _, numbering in logs])
    return logs


async def elsewhere(store: EventStore, segment: Segment) -> None:
    """A commit past the writer, as another process makes it."""
    await store.database.read(insert_fenced, [segment])


async def test_waiting_readers_cost_one_query_a_second_and_only_who_has_news_looks(store: EventStore) -> None:
    logs = await store.database.write(make_many_opened)
    readers = [Reader(store, row.pk) for row, _ in logs]
    await until(lambda: all(reader.position == 2 for reader in readers))
    statements = await watch_statements(store)
    numbering = logs[0][1]
    rounds = 3
    for _ in range(rounds):
        await elsewhere(store, numbering.seal([word("more ")]))
        await until(lambda: readers[0].position == numbering.next_position - 1)
    # Each round: a look of the watcher and two of the reader that has news; a slow machine adds some of the former.
    assert statements.reading(SEGMENTS) <= 10 * rounds
    for reader in readers:
        reader.task.cancel()


async def test_a_reader_that_finds_news_wakes_the_others(store: EventStore) -> None:
    row, numbering = await store.database.write(make_opened)
    first = Reader(store, row.pk)
    await until(lambda: first.position == 2)
    await elsewhere(store, numbering.seal([word("x")]))
    late = Reader(store, row.pk, position=numbering.next_position - 1)
    await until(lambda: first.position == numbering.next_position - 1)
    await elsewhere(store, ending(numbering))
    await until(lambda: first.is_over and late.is_over)


async def test_an_erased_log_ends_its_readers(store: EventStore) -> None:
    row, _ = await store.database.write(make_opened)
    reader = Reader(store, row.pk)
    await until(lambda: reader.position == 2)
    await store.database.read(EventSegment.objects.filter(response_id=row.pk).delete)
    with pytest.raises(LogErased):
        await asyncio.wait_for(reader.task, 30)


async def test_the_watcher_rests_when_nothing_is_watched(store: EventStore) -> None:
    row, numbering = await store.database.write(make_opened)
    reader = Reader(store, row.pk)
    await until(lambda: reader.position == 2)
    assert store.watcher.is_running
    await elsewhere(store, ending(numbering))
    await until(lambda: reader.is_over and not store.watcher.is_running)


async def accessed(store: EventStore, row: Response) -> float:
    found = await store.database.read(lambda: Response.objects.values_list("accessed_at", flat=True).get(pk=row.pk))
    return float(found.timestamp())


async def test_a_reader_of_a_log_that_is_written_elsewhere_is_noted_again_and_again(
    store: EventStore, settings: Any
) -> None:
    """The process that writes it would end it as unattended."""
    settings.HERMES_UNATTENDED_MINUTES = 0.01
    row, _ = await store.database.write(make_opened)
    reader = Reader(store, row.pk)
    await until(lambda: reader.position == 2)
    before = await accessed(store, row)

    async def is_noted_again() -> bool:
        nonlocal before
        now = await accessed(store, row)
        is_newer, before = now > before, now
        return is_newer

    for _ in range(2):
        await until_stored(is_noted_again)
    reader.task.cancel()


async def test_a_reader_of_a_log_that_is_written_here_rewrites_no_row(store: EventStore) -> None:
    row, _ = await store.database.write(make_opened)
    tail = store.tails.of(row.pk)
    tail.is_written_here = True
    reader = Reader(store, row.pk)
    await until(lambda: reader.position == 2)
    before = await accessed(store, row)
    for _ in range(2):
        await store.watcher.step()
    await store.database.write(lambda: None)
    assert await accessed(store, row) == before
    reader.task.cancel()


async def spy_on_updates(store: EventStore) -> list[str]:
    """The updates of responses in the threads of this database, from now on."""
    updates: list[str] = []
    all_threads = threading.Barrier(READ_THREADS)

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith('UPDATE "responses_app_response"'):
            updates.append(sql)
        return execute(sql, params, many, context)

    def install_in_reader() -> None:
        all_threads.wait(10)
        connection.execute_wrappers.append(note)

    await store.database.write(lambda: connection.execute_wrappers.append(note))
    await asyncio.gather(*(store.database.read(install_in_reader) for _ in range(READ_THREADS)))
    return updates


async def test_a_note_from_any_thread_is_written_and_all_share_a_statement(store: EventStore) -> None:
    rows = [(await store.database.write(make_opened))[0] for _ in range(5)]
    updates = await spy_on_updates(store)
    for row in rows:
        await asyncio.to_thread(store.note_access, row.pk)
    recent = timezone.now() - timedelta(hours=1)

    async def are_noted() -> bool:
        return await store.database.read(lambda: Response.objects.filter(accessed_at__gt=recent).count()) == 5

    await until_stored(are_noted)
    assert len(updates) == 1


async def test_a_note_makes_nothing_newer_than_what_ended_after_it(store: EventStore) -> None:
    """The note is written up to a second after the read; a response that ends meanwhile is used later."""
    read = (await store.database.write(make_opened))[0]
    await asyncio.to_thread(store.note_access, read.pk)
    ended_at = timezone.now().timestamp()
    await store.watcher.step()

    async def is_noted() -> bool:
        return await accessed(store, read) > LONG_AGO.timestamp()

    await until_stored(is_noted)
    assert await accessed(store, read) <= ended_at


def test_without_a_writer_a_note_is_written_at_once() -> None:
    row, _ = store_log(1, accessed_at=LONG_AGO)
    EventStore(Database()).note_access(row.pk)
    row.refresh_from_db()
    assert row.accessed_at > LONG_AGO


@pytest.mark.skipif(settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite has no row locks")
async def test_a_row_that_is_locked_elsewhere_holds_up_no_note(store: EventStore) -> None:
    held, free = [(await store.database.write(make_opened))[0] for _ in range(2)]
    parameters = connection.get_connection_params()
    address = {name: parameters[name] for name in ("host", "port", "user", "dbname")}
    other = await asyncio.to_thread(psycopg.connect, **address)
    try:
        other.execute("SELECT 1 FROM responses_app_response WHERE id = %s FOR SHARE", [held.pk])
        assert await store.database.read(Response.objects.note_access, [held.pk, free.pk]) == [free.pk]
        store.note_access(held.pk)
        before = await accessed(store, held)
        other.rollback()

        async def is_noted() -> bool:
            return await accessed(store, held) > before

        await until_stored(is_noted)
    finally:
        other.close()
