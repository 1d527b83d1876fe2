"""Every job of the writer gets its answer, whatever fails beside it."""

import asyncio
from dataclasses import replace

import pytest

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
