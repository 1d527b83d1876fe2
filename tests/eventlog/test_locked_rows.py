"""Rows that another session has locked: the jobs that need them wait, and all others are written."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from django.utils import timezone

from responses_app.database import Database
from responses_app.eventlog import Fenced
from responses_app.eventlog.reading import read_stored
from responses_app.eventlog.store import EventStore
from responses_app.models import Response, Session
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.settle import settle
from tests.support.stored_logs import (
    COMPLETED_BODY,
    delta,
    final,
    make_response,
    opening,
    unexpected,
)

pytestmark = pytest.mark.row_locks

WAIT_SECS = 30
LEASE = timedelta(seconds=10)


@asynccontextmanager
async def locked(url: str, table: str, pk: object) -> AsyncIterator[None]:
    """Another session that holds one row, as a backup, an operator or a slow query would."""
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute(f"SELECT 1 FROM responses_app_{table} WHERE id = %s FOR UPDATE".encode(), [pk])
        yield
        await other.rollback()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def stored_positions(store: EventStore, row: Response) -> list[int]:
    segments = await store.database.read(read_stored, row.pk)
    positions: list[int] = []
    for segment in segments:
        positions += range(segment.first_position, segment.last_position + 1)
    return positions


async def test_a_locked_response_keeps_no_other_waiting(postgres_url: str, store: EventStore) -> None:
    kept, free = [await store.database.write(make_response) for _ in range(2)]
    tails = [store.tails.of(row.pk) for row in (kept, free)]
    numberings = []
    async with locked(postgres_url, "response", kept.pk):
        for row, tail in zip((kept, free), tails, strict=True):
            numbering, first = opening(row)
            numberings.append(numbering)
            store.append(first, tail, unexpected)
        await until(lambda: tails[1].newest is not None)
        for numbering, tail in zip(numberings, tails, strict=True):
            store.append(delta(numbering), tail, unexpected)
        await until(lambda: tails[1].newest is not None and tails[1].newest.last_position == 1)
        assert tails[0].newest is None
        assert store.database.writer.lag_secs > 0
        assert store.database.writer.pending_bytes > 0
    await until(lambda: tails[0].newest is not None and tails[0].newest.last_position == 1)
    assert await stored_positions(store, kept) == [0, 1]
    assert store.database.writer.pending_bytes == 0


async def test_a_call_that_meets_a_lock_waits_alone(postgres_url: str, store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    async with locked(postgres_url, "session", row.session_id):
        waiting = store.database.submit(lambda: Session.objects.filter(pk=row.session_id).update(title="later"))
        store.append(opening(row)[1], tail, unexpected)
        assert await asyncio.wait_for(store.database.write(lambda: "at once"), WAIT_SECS) == "at once"
        await until(lambda: tail.newest is not None)
        assert not waiting.done()
    assert await asyncio.wrap_future(waiting) == 1


async def test_a_call_gives_up_after_a_while_and_stores_nothing(postgres_url: str, store: EventStore) -> None:
    row = await store.database.write(make_response)
    store.database.writer.postponed.give_up_secs = 0.3
    async with locked(postgres_url, "session", row.session_id):
        mine = Session.objects.filter(pk=row.session_id)
        with pytest.raises(StorageUnavailable):
            await asyncio.wait_for(store.database.write(lambda: mine.update(title="never")), WAIT_SECS)
    assert await store.database.read(lambda: Session.objects.get(pk=row.session_id).title) == ""


async def test_the_end_of_a_response_does_not_overtake_its_events(postgres_url: str, store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    async with locked(postgres_url, "response", row.pk):
        store.append(first, tail, unexpected)
        await until(lambda: store.database.writer.postponed.has_jobs)
        store.append(delta(numbering), tail, unexpected)
        end = final(numbering)
        ending = store.database.submit(lambda: settle(row, end, COMPLETED_BODY).segment, tail.publish, row.pk)
        await asyncio.wait_for(store.database.write(lambda: None), WAIT_SECS)
    await asyncio.wrap_future(ending)
    assert await stored_positions(store, row) == [0, 1, 2]


async def test_an_older_attempt_is_fenced_and_not_taken_for_locked(postgres_url: str, store: EventStore) -> None:
    row = await store.database.write(make_response)
    await store.database.write(lambda: Response.objects.filter(pk=row.pk).update(attempt=1))
    refused: list[Exception] = []
    async with locked(postgres_url, "response", row.pk):
        store.append(opening(row)[1], store.tails.of(row.pk), refused.append)
        await until(lambda: bool(refused))
    assert isinstance(refused[0], Fenced)


async def test_a_lock_that_shows_at_the_commit_keeps_no_other_waiting(postgres_url: str, store: EventStore) -> None:
    """A new response refers to its owner, whose row PostgreSQL looks up only at the COMMIT."""
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        await other.execute(b"SELECT 1 FROM auth_user FOR UPDATE")
        waiting = store.database.submit(lambda: make_response(row.session))
        store.append(opening(row)[1], tail, unexpected)
        await until(lambda: tail.newest is not None)
        assert not waiting.done()
        await other.rollback()
    made = await asyncio.wrap_future(waiting)
    assert await store.database.read(Response.objects.filter(pk=made.pk).exists)


async def test_a_locked_table_loses_no_append(postgres_url: str, store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        await other.execute(b"LOCK TABLE responses_app_eventsegment IN ACCESS EXCLUSIVE MODE")
        store.append(first, tail, unexpected)
        store.append(delta(numbering), tail, unexpected)
        mine = Session.objects.filter(pk=row.session_id)
        written = store.database.write(lambda: mine.update(title="meanwhile"))
        assert await asyncio.wait_for(written, WAIT_SECS) == 1
        assert tail.newest is None
        await other.rollback()
    await until(lambda: tail.newest is not None and tail.newest.last_position == 1)
    assert await stored_positions(store, row) == [0, 1]


async def test_a_locked_response_keeps_no_lease_from_being_renewed(postgres_url: str, store: EventStore) -> None:
    kept, free = [await store.database.write(make_response) for _ in range(2)]
    for row in (kept, free):
        assert await store.database.write(partial(Response.objects.claim, row.pk, 0, "me", -LEASE))
    async with locked(postgres_url, "response", kept.pk):
        renewal = partial(Response.objects.renew, "me", {kept.pk: 1, free.pk: 1}, LEASE)
        held = await asyncio.wait_for(store.database.write(renewal), WAIT_SECS)
        assert held == {kept.pk: False, free.pk: False}
        expired = await store.database.read(lambda: list(Response.objects.expired().values_list("pk", flat=True)))
        assert expired == [kept.pk]


async def test_two_processes_that_need_the_same_rows_do_not_deadlock(postgres_url: str) -> None:
    """Each holds the row that the other needs next; neither caller sees more than a delay."""
    async with running_store() as store, running_store() as other:
        rows = [await store.database.write(make_response) for _ in range(2)]
        both_hold_one = threading.Barrier(2, timeout=WAIT_SECS)
        futures = []
        for database, order in ((store.database, rows), (other.database, rows[::-1])):
            gathered = threading.Event()
            database.submit(gathered.wait)
            futures += [database.submit(_note(order[0].pk, both_hold_one.wait))]
            futures += [database.submit(_note(order[1].pk))]
            gathered.set()
        async with asyncio.timeout(WAIT_SECS):
            noted = await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))
        assert noted == [1, 1, 1, 1]
    assert await deadlocks(postgres_url) == 0


async def test_an_append_to_many_responses_does_not_deadlock(postgres_url: str) -> None:
    async with running_store() as store, running_store() as other:
        first, second = [await store.database.write(make_response) for _ in range(2)]
        gathered, has_first, may_go_on = threading.Event(), threading.Event(), threading.Event()

        def hold() -> None:
            has_first.set()
            may_go_on.wait(WAIT_SECS)

        other.database.submit(gathered.wait)
        noted = [other.database.submit(_note(second.pk, hold)), other.database.submit(_note(first.pk))]
        gathered.set()
        await until(has_first.is_set)
        tails = [store.tails.of(row.pk) for row in (first, second)]
        both_appended = threading.Event()
        store.database.submit(both_appended.wait)
        for row, tail in zip((first, second), tails, strict=True):
            store.append(opening(row)[1], tail, unexpected)
        both_appended.set()
        await until(lambda: store.database.writer.lag_secs > 0.2)
        may_go_on.set()
        async with asyncio.timeout(WAIT_SECS):
            assert await asyncio.gather(*(asyncio.wrap_future(future) for future in noted)) == [1, 1]
        await until(lambda: all(tail.newest is not None for tail in tails))
    assert await deadlocks(postgres_url) == 0


@asynccontextmanager
async def running_store() -> AsyncIterator[EventStore]:
    store = EventStore(Database())
    store.database.writer.start(asyncio.get_running_loop())
    yield store
    await asyncio.to_thread(store.database.close)


async def deadlocks(url: str) -> int:
    """As PostgreSQL counted them; it adds what a session saw when that session ends."""
    async with await psycopg.AsyncConnection.connect(url) as asking:
        sql = b"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        cursor = await asking.execute(sql)
        found = await cursor.fetchone()
    assert found is not None
    return int(found[0])


def _note(response_id: str, meet: Callable[[], object] | None = None) -> Callable[[], int]:
    """Locks the row, and then once meets the other side: the work runs again where it had to give way."""
    has_met = threading.Event()

    def work() -> int:
        noted = Response.objects.filter(pk=response_id).update(accessed_at=timezone.now())
        if meet is not None and not has_met.is_set():
            has_met.set()
            meet()
        return noted

    return work
