"""Appends that no reader waits for share a commit with what comes next."""

import asyncio
from dataclasses import dataclass

import pytest

from responses_app.eventlog import gathering
from responses_app.eventlog.followers import Alarm, Follower
from responses_app.eventlog.reading import read_whole
from responses_app.eventlog.segments import Numbering
from responses_app.eventlog.store import EventStore
from responses_app.eventlog.tails import Tail
from responses_app.models import Response
from tests.support.stored_logs import delta, make_response, opening, unexpected

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@dataclass
class Log:
    row: Response
    tail: Tail
    numbering: Numbering

    def extend(self, store: EventStore) -> None:
        store.append(delta(self.numbering), self.tail, unexpected, may_gather=True)


@pytest.fixture
async def log(store: EventStore) -> Log:
    row = await store.database.write(make_response)
    tail = store.tails.of(row.pk)
    numbering, first = opening(row)
    store.append(first, tail, unexpected)
    await store.database.write(lambda: None)
    return Log(row, tail, numbering)


async def stored_rows(store: EventStore, log: Log) -> int:
    return len(await store.database.read(read_whole, log.row.pk))


async def published(log: Log) -> None:
    """Until the next commit of the log."""
    with Alarm(30.0) as alarm:
        await log.tail.wait(log.tail.version, Follower(None, alarm))


async def test_unread_appends_are_committed_with_the_next_call(
    store: EventStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "UNREAD_SECS", 3600.0)
    for _ in range(3):
        log.extend(store)
        await asyncio.to_thread(lambda: None)  # the writer could have committed
    assert await stored_rows(store, log) == 1
    await store.database.write(lambda: None)
    assert await stored_rows(store, log) == 2


async def test_unread_appends_are_committed_after_a_short_while(store: EventStore, log: Log) -> None:
    log.extend(store)
    await published(log)
    assert await stored_rows(store, log) == 2


async def test_an_append_that_a_reader_waits_for_is_committed_at_once(
    store: EventStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "UNREAD_SECS", 3600.0)
    with log.tail.reading():
        log.extend(store)
        await published(log)
    assert await stored_rows(store, log) == 2


async def test_an_append_that_may_not_gather_is_committed_at_once(
    store: EventStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "UNREAD_SECS", 3600.0)
    store.append(delta(log.numbering), log.tail, unexpected)
    await published(log)
    assert await stored_rows(store, log) == 2


async def test_many_bytes_are_committed_without_a_reader(
    store: EventStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "UNREAD_SECS", 3600.0)
    monkeypatch.setattr(gathering, "UNREAD_BYTES", 10)
    log.extend(store)
    await published(log)
    assert await stored_rows(store, log) == 2


async def test_the_end_of_the_writer_commits_what_no_reader_waits_for(
    store: EventStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "UNREAD_SECS", 3600.0)
    log.extend(store)
    await asyncio.to_thread(store.database.writer.stop)
    assert await stored_rows(store, log) == 2
