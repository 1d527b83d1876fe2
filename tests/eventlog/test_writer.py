"""The writer: one order, one commit for many, and one bad write that fails alone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest
from django.db import IntegrityError, OperationalError

from responses_app.database import Database
from responses_app.eventlog import Fenced, Segment
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.merging import merge, replace_with_merged
from responses_app.eventlog.reading import read_segments, read_whole
from responses_app.eventlog.store import EventStore
from responses_app.models import EventSegment, Response, ToolEvent
from responses_app.protocol.errors import StorageUnavailable
from responses_app.protocol.events import TERMINAL_TYPES
from responses_app.protocol.status import Status
from tests.support.stored_logs import delta, make_response, opening, unexpected

pytestmark = pytest.mark.django_db(transaction=True)
LEASE = timedelta(seconds=10)


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    running = EventStore(Database())
    running.database.writer.start(asyncio.get_running_loop())
    yield running
    await asyncio.to_thread(running.database.close)


async def test_a_write_behind_the_end_of_the_writer_is_refused(store: EventStore) -> None:
    await asyncio.to_thread(store.database.writer.stop)
    with pytest.raises(StorageUnavailable):
        await store.database.write(make_response)


async def test_appends_that_wait_share_a_segment_and_wake_their_reader(store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    store.append(first, tail, unexpected)
    for _ in range(20):
        store.append(delta(numbering), tail, unexpected)
    await store.database.write(lambda: None)
    stored = await store.database.read(read_whole, row.pk)
    assert stored[-1].last_position == 20
    assert len(stored) < 21
    assert tail.newest is not None
    assert tail.newest.last_position == 20


async def test_an_append_of_an_older_attempt_is_refused_and_the_others_are_not(store: EventStore) -> None:
    rows = [await store.database.write(make_response) for _ in range(2)]
    refused: list[Exception] = []
    tails = [store.tails.of(row.pk) for row in rows]
    await store.database.write(lambda: Response.objects.claim(rows[0].pk, 0, "newer", LEASE))
    for row, tail in zip(rows, tails, strict=True):
        store.append(opening(row)[1], tail, refused.append)
    await store.database.write(lambda: None)
    assert [type(error) for error in refused] == [Fenced]
    assert tails[0].newest is None
    assert tails[1].newest is not None


async def test_one_bad_append_never_fails_the_others_of_its_batch(store: EventStore) -> None:
    rows = [await store.database.write(make_response) for _ in range(3)]
    tails = [store.tails.of(row.pk) for row in rows]
    await store.database.write(lambda: insert_fenced([opening(rows[1])[1]]))
    refused: list[Exception] = []
    for row, tail in zip(rows, tails, strict=True):
        data = b"event: other\ndata: {}\n\n"
        segment = opening(row)[1]
        conflicting = Segment(row.pk, 0, 0, 0, 0, 1, (data,)) if row is rows[1] else segment
        store.append(conflicting, tail, refused.append)
    await store.database.write(lambda: None)
    assert len(refused) == 1
    assert [tail.newest is not None for tail in tails] == [True, False, True]


async def test_a_row_that_is_there_already_and_equal_counts_as_written(store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    segment = opening(row)[1]
    await store.database.write(lambda: insert_fenced([segment]))
    store.append(segment, tail, unexpected)
    await store.database.write(lambda: None)
    assert tail.newest is not None


async def test_a_call_that_raises_fails_alone_and_leaves_nothing(store: EventStore) -> None:
    def bad() -> None:
        make_response()
        raise ValueError("no")

    good = store.database.submit(make_response)
    failing = store.database.submit(bad)
    last = store.database.submit(make_response)
    with pytest.raises(ValueError, match="no"):
        await asyncio.wrap_future(failing)
    await asyncio.wrap_future(good)
    await asyncio.wrap_future(last)
    assert await store.database.read(Response.objects.count) == 2


async def test_what_fails_at_its_commit_is_never_called_written(store: EventStore) -> None:
    """A deferred constraint fails at COMMIT, when all statements have already succeeded."""
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    announced: list[object] = []
    store.append(first, tail, unexpected)
    failing = store.database.submit(
        lambda: ToolEvent.objects.create(response_id="resp_unknown", attempt=1, call_id="call", name="tool"),
        announced.append,
    )
    store.append(delta(numbering), tail, unexpected)
    with pytest.raises(IntegrityError):
        await asyncio.wrap_future(failing)
    await store.database.write(lambda: None)
    assert announced == []
    assert [s.last_position for s in await store.database.read(read_whole, row.pk)][-1] == 1


async def test_a_caller_that_stops_waiting_does_not_disturb_the_writer(store: EventStore) -> None:
    waiting = asyncio.ensure_future(store.database.write(make_response))
    await asyncio.sleep(0)
    waiting.cancel()
    await store.database.write(make_response)
    assert await store.database.read(Response.objects.count) == 2


async def test_while_the_database_is_away_appends_wait_in_order_and_callers_get_errors(store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    is_away = True

    def probe() -> None:
        if is_away:
            raise OperationalError("the disk is full")

    store.append(first, tail, unexpected)
    failing = store.database.submit(probe)
    store.append(delta(numbering), tail, unexpected)
    with pytest.raises(StorageUnavailable):
        await asyncio.wrap_future(failing)
    is_away = False
    await store.database.write(lambda: None)
    assert [s.last_position for s in await store.database.read(read_whole, row.pk)][-1] == 1


async def test_a_reader_gets_what_is_stored_then_what_comes_then_the_end(store: EventStore) -> None:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    store.append(first, tail, unexpected)
    await store.database.write(lambda: None)
    seen: list[int] = []

    async def read() -> None:
        async for segments in store.read_after(row.pk, -1, 30):
            seen.extend(range(segments[0].first_position, segments[-1].last_position + 1))

    reader = asyncio.create_task(read())
    for _ in range(5):
        store.append(delta(numbering), tail, unexpected)
        await store.database.write(lambda: None)
    store.append(numbering.seal([{"type": sorted(TERMINAL_TYPES)[0], "response": {}}]), tail, unexpected)
    await asyncio.wait_for(reader, 10)
    assert seen == list(range(7))


async def test_a_reader_in_another_process_sees_new_events_without_any_hint(store: EventStore) -> None:
    row = await store.database.write(make_response)
    numbering, first = opening(row)
    await store.database.write(lambda: insert_fenced([first]))
    seen: list[int] = []

    async def read() -> None:
        async for segments in store.read_after(row.pk, -1, 30):
            seen.extend(segment.last_position for segment in segments)

    reader = asyncio.create_task(read())
    await store.database.write(lambda: insert_fenced([delta(numbering)]))
    final = numbering.seal([{"type": "response.completed", "response": {}}])
    await store.database.write(lambda: insert_fenced([final]))
    await asyncio.wait_for(reader, 10)
    assert seen[-1] == 2


async def test_a_merged_log_reads_the_same_and_keeps_its_commit_times(store: EventStore) -> None:
    row = await store.database.write(make_response)
    numbering, first = opening(row)
    for segment in (first, delta(numbering), delta(numbering)):
        await store.database.write(partial(insert_fenced, [segment]))
    before = await store.database.read(read_whole, row.pk)
    await store.database.write(lambda: replace_with_merged(row.pk, merge(before)))
    after = await store.database.read(read_whole, row.pk)
    assert len(after) == 1
    assert after[0].data == b"".join(segment.data for segment in before)
    assert after[0].commit_marks == ",".join(segment.commit_marks for segment in before)
    assert len(after[0].commit_marks.split(",")) == 3
    for position in range(-1, 3):
        cut = await store.database.read(read_segments, row.pk, position)
        assert sum(s.last_position - s.first_position + 1 for s in cut) == 2 - position
    assert await store.database.read(EventSegment.objects.count) == 1


def test_of_two_claims_one_wins_and_a_live_lease_keeps_others_out() -> None:
    row = make_response()
    assert Response.objects.claim(row.pk, 0, "a", LEASE)
    assert not Response.objects.claim(row.pk, 0, "b", LEASE)
    assert not Response.objects.claim(row.pk, 1, "b", LEASE)
    Response.objects.release(["a"], is_crash=True)
    assert Response.objects.claim(row.pk, 1, "b", LEASE)


def test_a_turn_waits_for_the_turns_before_it_in_its_session() -> None:
    first = make_response()
    second = make_response(first.session, waits_for_turn=True)
    free = make_response(first.session)
    assert not Response.objects.claim(second.pk, 0, "a", LEASE)
    assert Response.objects.claim(free.pk, 0, "a", LEASE)
    assert Response.objects.move(first.pk, 0, Status.COMPLETED)
    assert Response.objects.claim(second.pk, 0, "a", LEASE)


def test_terminal_states_never_change() -> None:
    for terminal in (Status.COMPLETED, Status.FAILED, Status.INCOMPLETE, Status.CANCELLED):
        row = make_response()
        assert Response.objects.move(row.pk, 0, terminal)
        for other in Status:
            assert not Response.objects.move(row.pk, 0, other)
        assert not Response.objects.request_cancel(row.pk)
        assert not Response.objects.claim(row.pk, 0, "a", LEASE)


def test_an_unstored_response_is_claimed_only_where_its_request_is_known() -> None:
    row = make_response(is_stored=False, lease_owner="here")
    assert not Response.objects.claim(row.pk, 0, "elsewhere", LEASE)
    assert Response.objects.claim(row.pk, 0, "here", LEASE)


def test_a_lease_that_ran_out_is_renewed_and_what_does_not_run_is_given_back() -> None:
    running, left = make_response(), make_response()
    for row in (running, left):
        assert Response.objects.claim(row.pk, 0, "me", timedelta(seconds=-1))
        assert not Response.objects.claim(row.pk, 1, "other", LEASE)
    assert Response.objects.renew("me", {running.pk: 1}, LEASE) == {running.pk: False}
    assert Response.objects.renew("me", {running.pk: 2}, LEASE) == {}
    assert Response.objects.release_own("me", [running.pk]) == 1
    assert not Response.objects.claim(running.pk, 1, "other", LEASE)
    assert Response.objects.claim(left.pk, 1, "other", LEASE)
    assert Response.objects.get(pk=left.pk).crashes == 1
