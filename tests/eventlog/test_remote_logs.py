"""Logs that other processes write: one query for all that a hint names. The poll is turned off."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from responses_app.eventlog import Numbering, merge, read_stored, replace_with_merged
from responses_app.eventlog.carried_segments import MAX_BYTES, SegmentSealer, unseal_segments
from responses_app.eventlog.hints import Hints, SharedTail
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.store import EventStore
from responses_app.models import Response
from responses_app.protocol.status import Status
from responses_app.sealing import NotSealedHere
from tests.support.event_logs import ending, make_response, opening, watch_statements, word, wrap_reads

pytestmark = pytest.mark.django_db(transaction=True)
SEGMENTS = "responses_app_eventsegment"
LOGS = 5


class Reader:
    def __init__(self, store: EventStore, response_id: str) -> None:
        self.position = -1
        self.data = b""
        self._moved = asyncio.Event()
        self.task = asyncio.create_task(self._read(store, response_id))

    async def _read(self, store: EventStore, response_id: str) -> None:
        async for segments in store.read_after(response_id, -1, 60):
            for segment in segments:
                assert segment.first_position == self.position + 1
                self.position = segment.last_position
                self.data += segment.data
            self._moved.set()

    async def reached(self, position: int) -> None:
        async with asyncio.timeout(20):
            while self.position < position:
                self._moved.clear()
                await self._moved.wait()


@pytest.fixture
def shared(store: EventStore, settings: Any) -> EventStore:
    settings.HERMES_POLL_SECS = 600
    store.tails.kind = SharedTail
    return store


def make_logs() -> list[Numbering]:
    logs = []
    for _ in range(LOGS):
        row = make_response()
        logs.append(Numbering(row.pk, 0))
    insert_fenced([opening(numbering) for numbering in logs])
    return logs


async def read_logs(store: EventStore) -> tuple[list[Numbering], list[Reader]]:
    logs = await store.database.write(make_logs)
    readers = [Reader(store, numbering.response_id) for numbering in logs]
    await asyncio.gather(*[reader.reached(2) for reader in readers])
    return logs, readers


def positions(logs: list[Numbering]) -> dict[str, int]:
    return {numbering.response_id: numbering.next_position - 1 for numbering in logs}


async def test_one_query_reads_all_logs_that_a_hint_names(shared: EventStore) -> None:
    logs, readers = await read_logs(shared)
    statements = await watch_statements(shared)
    for _ in range(3):
        grown = [numbering.seal([word("more ")]) for numbering in logs]
        await shared.database.read(insert_fenced, grown)
    shared.remote_logs.note(positions(logs))
    await asyncio.gather(*[reader.reached(5) for reader in readers])
    assert statements.reading(SEGMENTS) == 1
    await shared.database.read(insert_fenced, [ending(numbering) for numbering in logs])
    shared.remote_logs.note(positions(logs))
    await asyncio.gather(*[reader.task for reader in readers])
    assert statements.reading(SEGMENTS) == 2


class LiveLog:
    """Another process stores one more word just before each read of the log, some times."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.words_left = 10
        self.reads = 0

    def __call__(self, execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        if sql.startswith("SELECT") and SEGMENTS in sql:
            self.reads += 1
            if self.words_left:
                self.words_left -= 1
                insert_fenced([self.numbering.seal([word("more ")])])
        return execute(sql, *args)


async def test_the_reader_of_a_log_that_grows_all_the_time_follows_hints(shared: EventStore) -> None:
    [numbering, *_] = await shared.database.write(make_logs)
    live = LiveLog(numbering)
    await wrap_reads(shared, live)
    reader = Reader(shared, numbering.response_id)
    await reader.reached(4)
    live.words_left = 0
    await shared.database.read(insert_fenced, [ending(numbering)])
    shared.remote_logs.note(positions([numbering]))
    async with asyncio.timeout(20):
        await reader.task
    assert live.reads == 3  # two by itself, one for the hint


async def test_logs_without_readers_are_not_read(shared: EventStore) -> None:
    logs = await shared.database.write(make_logs)
    statements = await watch_statements(shared)
    shared.remote_logs.note(positions(logs))
    await shared.database.read(Response.objects.count)  # behind whatever the hint has started
    assert statements.reading(SEGMENTS) == 0


async def test_a_log_that_was_merged_meanwhile_is_read_by_its_reader(shared: EventStore) -> None:
    logs, readers = await read_logs(shared)
    numbering = logs[0]

    def end_and_merge() -> None:
        insert_fenced([numbering.seal([word("last")])])
        insert_fenced([ending(numbering)])
        ended = {"status": Status.COMPLETED, "finished_at": timezone.now()}
        Response.objects.filter(pk=numbering.response_id).update(**ended)
        replace_with_merged(numbering.response_id, merge(read_stored(numbering.response_id)))

    await shared.database.read(end_and_merge)
    shared.remote_logs.note(positions([numbering]))
    async with asyncio.timeout(20):
        await readers[0].task
    assert b"last" in readers[0].data


async def test_hints_of_one_commit_are_one_message() -> None:
    hints = Hints()
    hints.start()
    first, second = Numbering("a", 0), Numbering("b", 0)
    stored = [first.seal([word("x")]), second.seal([word("y"), word("z")]), first.seal([word("x")])]

    def commit() -> None:
        for segment in stored:
            hints.note_stored(segment)
        hints.note_cancelled("c")

    asyncio.get_running_loop().call_soon(commit)  # when the taker waits
    hint = await hints.take()
    assert unseal_segments(hint.pop("segments")) == stored
    assert hint == {"stored": {"a": 1, "b": 1}, "cancelled": ["c"], "is_key_revoked": False}


async def test_readers_of_what_a_hint_carries_need_no_query(shared: EventStore) -> None:
    logs, readers = await read_logs(shared)
    statements = await watch_statements(shared)
    for _ in range(3):
        grown = [numbering.seal([word("more ")]) for numbering in logs]
        await shared.database.read(insert_fenced, grown)
        shared.remote_logs.note(positions(logs), grown)
    ends = [ending(numbering) for numbering in logs]
    await shared.database.read(insert_fenced, ends)
    shared.remote_logs.note(positions(logs), ends)
    await asyncio.gather(*[reader.task for reader in readers])
    assert statements.reading(SEGMENTS) == 0
    for numbering, reader in zip(logs, readers, strict=True):
        stored = await shared.database.read(read_stored, numbering.response_id)
        assert reader.data == b"".join([segment.data for segment in stored])


async def test_a_lost_hint_costs_one_query(shared: EventStore) -> None:
    """And neither one that comes late or twice repeats an event."""
    [numbering, *_], [reader, *_] = await read_logs(shared)
    statements = await watch_statements(shared)
    lost, late, last = [numbering.seal([word("more ")]) for _ in range(3)]
    await shared.database.read(insert_fenced, [lost, late, last])
    shared.remote_logs.note({numbering.response_id: last.last_position}, [last])
    shared.remote_logs.note({numbering.response_id: late.last_position}, [late])
    await reader.reached(last.last_position)
    shared.remote_logs.note({numbering.response_id: last.last_position}, [lost, late, last])
    end = ending(numbering)
    await shared.database.read(insert_fenced, [end])
    shared.remote_logs.note({numbering.response_id: end.last_position}, [late, end])
    async with asyncio.timeout(20):
        await reader.task
    assert statements.reading(SEGMENTS) == 1


async def test_a_hint_carries_a_limited_number_of_bytes() -> None:
    hints = Hints()
    hints.start()
    numbering = Numbering("a", 0)
    for text in ("short", "x" * MAX_BYTES, "short"):
        hints.note_stored(numbering.seal([word(text)]))
    hint = await hints.take()
    assert [segment.first_position for segment in unseal_segments(hint["segments"])] == [0]
    assert hint["stored"] == {"a": 2}
    hints.note_stored(numbering.seal([word("x")]))
    hint = await hints.take()
    assert [segment.first_position for segment in unseal_segments(hint["segments"])] == [3]


def test_what_was_altered_or_sealed_elsewhere_is_refused(settings: Any) -> None:
    carried = SegmentSealer().seal([Numbering("a", 0).seal([word("x")])])
    for altered in (b"", carried[:28], carried[:-1], carried[:-1] + bytes([carried[-1] ^ 1])):
        with pytest.raises(NotSealedHere):
            unseal_segments(altered)
    assert b"output_text" not in carried
    settings.SECRET_KEY = "of another cluster"
    with pytest.raises(NotSealedHere):
        unseal_segments(carried)


async def test_what_one_reader_finds_the_others_need_not_query(shared: EventStore) -> None:
    [numbering, *_], readers = await read_logs(shared)
    readers += [Reader(shared, numbering.response_id) for _ in range(20)]
    await asyncio.gather(*[reader.reached(2) for reader in readers])
    first = numbering.seal([word("more ")])
    await shared.database.read(insert_fenced, [first])
    shared.remote_logs.note(positions([numbering]), [first])
    await asyncio.gather(*[reader.reached(3) for reader in readers[LOGS:]])
    statements = await watch_statements(shared)
    await shared.database.read(insert_fenced, [numbering.seal([word("more ")])])
    late = Reader(shared, numbering.response_id)  # before the hint
    await asyncio.gather(*[reader.reached(4) for reader in [late, *readers[LOGS:]]])
    assert statements.reading(SEGMENTS) <= 2  # those of the new reader


async def test_the_poll_reads_for_all_readers_of_a_log_with_one_query(shared: EventStore) -> None:
    [numbering, *_] = await shared.database.write(make_logs)
    readers = [Reader(shared, numbering.response_id) for _ in range(20)]
    await asyncio.gather(*[reader.reached(2) for reader in readers])
    await asyncio.sleep(0)
    statements = await watch_statements(shared)
    await shared.database.read(insert_fenced, [ending(numbering)])
    await shared.watcher.step()
    async with asyncio.timeout(20):
        await asyncio.gather(*[reader.task for reader in readers])
    assert statements.reading(SEGMENTS) == 2  # how far it reaches, and what is new
