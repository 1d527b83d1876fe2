"""Every job of the writer gets its answer, whatever fails beside it."""

import asyncio
import threading
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat

from responses_app.eventlog.store import EventStore
from responses_app.models import Response, Session
from tests.support.flaky_proxy import WriteCutter
from tests.support.stored_logs import (
    delta,
    make_response,
    opening,
    unexpected,
)

WAIT_SECS = 30


@pytest.mark.django_db(transaction=True)
async def test_a_callback_that_fails_keeps_no_caller_waiting(store: EventStore) -> None:
    def fail(row: Response) -> None:
        raise RuntimeError("the callback failed")

    async with asyncio.timeout(WAIT_SECS):
        row = await store.database.write(make_response, fail)
    assert await store.database.read(Response.objects.filter(pk=row.pk).exists)


@pytest.mark.django_db(transaction=True)
async def test_an_append_that_no_driver_can_encode_fails_alone(store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    refused: list[Exception] = []
    segment = opening(row)[1]
    store.append(replace(segment, response_id="resp_\ud800"), tail, refused.append)
    store.append(segment, tail, unexpected)
    beside = store.database.submit(lambda: "beside")
    assert await asyncio.wrap_future(beside) == "beside"
    await store.database.write(lambda: None)
    assert tail.newest is not None
    assert [type(error) for error in refused] == [UnicodeEncodeError]


@pytest.mark.row_locks
@pytest.mark.parametrize("is_delivered", [True, False])
async def test_a_broken_commit_is_answered_though_the_next_batch_fails(
    cutter: WriteCutter, store: EventStore, is_delivered: bool
) -> None:
    row = await store.database.write(make_response)
    numbering, first = opening(row)
    tail = store.tails.of(row.pk)
    store.append(first, tail, unexpected)
    await store.database.write(lambda: None)
    refused: list[Exception] = []
    cutter.cut(2, is_delivered=is_delivered)  # the UPDATE is the first write, its COMMIT the second
    answered = store.database.submit(lambda: Session.objects.filter(pk=row.session_id).update(title="once"))
    bad = replace(delta(numbering), response_id="resp_\ud800")
    while not cutter.cuts:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    store.append(bad, tail, refused.append)
    async with asyncio.timeout(WAIT_SECS):
        assert await asyncio.wrap_future(answered) == 1
        await store.database.write_with_retry(lambda: None)
    assert len(refused) == 1
    assert await store.database.read(lambda: Session.objects.get(pk=row.session_id).title) == "once"


@pytest.mark.django_db(transaction=True)
async def test_a_call_that_fails_leaves_the_calls_of_its_batch_stored_once(store: EventStore) -> None:
    row = await store.database.write(make_response)
    is_held, is_submitted = threading.Event(), threading.Event()

    def hold() -> None:
        is_held.set()
        is_submitted.wait(WAIT_SECS)

    def rename(title: str, error: Exception | None = None) -> int:
        changed = Session.objects.filter(pk=row.session_id).update(title=Concat("title", Value(title)))
        if error is not None:
            raise error
        return changed

    holding = store.database.submit(hold)
    await asyncio.to_thread(is_held.wait, WAIT_SECS)
    calls = [store.database.submit(partial(rename, "a"))]
    calls.append(store.database.submit(partial(rename, "b", ValueError("no"))))
    calls.append(store.database.submit(partial(rename, "c")))
    is_submitted.set()
    await asyncio.wrap_future(holding)
    results = await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    assert [results[0], str(results[1]), results[2]] == [1, "no", 1]
    assert await store.database.read(lambda: Session.objects.get(pk=row.session_id).title) == "ac"


@pytest.mark.django_db(transaction=True)
async def test_calls_that_succeed_need_no_savepoints(store: EventStore) -> None:
    assert await store.database.write(lambda: len(connection.savepoint_ids)) == 0
