"""The end of a log: nothing is stored behind it, and every reader stops there."""

import asyncio
import zlib

import orjson
import pytest
from django.utils import timezone

from responses_app.eventlog import Fenced, Segment, current_body, final_bodies
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.merging import merge, replace_with_merged
from responses_app.eventlog.reading import read_last, read_on, read_stored, read_whole
from responses_app.eventlog.snapshots import final_body
from responses_app.eventlog.store import EventStore
from responses_app.models import EventSegment, Response
from responses_app.models.segments import Codec
from responses_app.protocol.status import Status
from responses_app.services.archive.records import response_records
from responses_app.services.lifecycle.settle import settle
from tests.support.stored_logs import (
    COMPLETED_BODY,
    delta,
    final,
    make_response,
    opening,
    progress,
)

pytestmark = pytest.mark.django_db(transaction=True)


def store_raw(segment: Segment, *, is_packed: bool = False, is_final: bool | None = None) -> None:
    EventSegment.objects.create(
        response_id=segment.response_id,
        attempt=segment.attempt,
        first_position=segment.first_position,
        last_position=segment.last_position,
        first_sequence=segment.first_sequence,
        next_sequence=segment.next_sequence,
        is_final=segment.is_final if is_final is None else is_final,
        codec=Codec.ZLIB if is_packed else Codec.PLAIN,
        commit_marks=segment.commit_marks,
        frames=zlib.compress(segment.data) if is_packed else segment.data,
    )


def whole(segments: list[Segment]) -> Segment:
    first, last = segments[0], segments[-1]
    return Segment(
        first.response_id,
        first.attempt,
        first.first_position,
        last.last_position,
        first.first_sequence,
        last.next_sequence,
        (b"".join(segment.data for segment in segments),),
        commit_marks=",".join(segment.commit_marks for segment in segments),
    )


def store_log_with_a_tail(*, is_packed: bool) -> tuple[str, bytes]:
    """A log as an earlier version stored it: two events of a tool behind the terminal one."""
    row = make_response()
    numbering, first = opening(row)
    log = [first, delta(numbering), final(numbering), progress(numbering), progress(numbering)]
    if is_packed:
        store_raw(whole(log), is_packed=True)
    else:
        for segment in log:
            store_raw(segment)
    Response.objects.filter(pk=row.pk).update(
        status=Status.COMPLETED, finished_at=timezone.now(), is_log_merged=is_packed
    )
    return row.pk, b"".join(segment.data for segment in log)


def test_an_append_to_a_settled_response_is_refused() -> None:
    row = make_response()
    numbering, first = opening(row)
    assert insert_fenced([first])
    settle(row, final(numbering), COMPLETED_BODY)
    assert insert_fenced([progress(numbering)]) == set()
    assert read_stored(row.pk)[-1].is_final


def test_a_second_end_is_refused() -> None:
    row = make_response()
    numbering, first = opening(row)
    assert insert_fenced([first])
    settle(row, final(numbering), COMPLETED_BODY)
    with pytest.raises(Fenced):
        settle(row, final(numbering), COMPLETED_BODY)


@pytest.mark.parametrize("is_packed", [False, True])
async def test_readers_end_at_the_terminal_event(store: EventStore, is_packed: bool) -> None:
    response_id, _ = await store.database.read(lambda: store_log_with_a_tail(is_packed=is_packed))
    for position in (-1, 0, 1, 2):
        seen: list[int] = []
        async with asyncio.timeout(10):
            async for segments in store.read_after(response_id, position, 1):
                for segment in segments:
                    seen += range(segment.first_position, segment.last_position + 1)
        assert seen == list(range(position + 1, 3))
    assert await store.position_after(response_id, 2) == 2
    assert final_body(await store.wait_final(response_id))["id"] == response_id


@pytest.mark.parametrize("is_packed", [False, True])
def test_every_query_ends_at_the_terminal_event(is_packed: bool) -> None:
    response_id, _ = store_log_with_a_tail(is_packed=is_packed)
    last = read_last(response_id)
    assert last is not None
    assert (last.is_final, last.last_position, last.next_sequence) == (True, 2, 3)
    assert read_whole(response_id)[-1].last_position == 2
    assert read_on(response_id, 2) is None
    body = current_body(response_id)
    assert body is not None
    assert body["status"] == "completed"
    assert final_bodies([response_id]).get(response_id, body) == body
    [record] = response_records([Response.objects.get(pk=response_id)])
    record = orjson.loads(orjson.dumps(record))
    assert [event["type"] for event in record["events"]][-1] == "response.completed"
    assert [position for position, _ in record["commits"]] == [0, 1, 2]


@pytest.mark.parametrize("is_packed", [False, True])
def test_merging_keeps_every_stored_event_and_the_end_where_readers_find_it(is_packed: bool) -> None:
    response_id, stored = store_log_with_a_tail(is_packed=is_packed)
    Response.objects.filter(pk=response_id).update(is_log_merged=False)
    replace_with_merged(response_id, merge(read_stored(response_id)))
    rows = EventSegment.objects.filter(response_id=response_id).order_by("first_position")
    assert [(row.last_position, row.is_final) for row in rows] == [(2, True), (4, False)]
    assert b"".join(zlib.decompress(row.frames) for row in rows) == stored
    assert read_whole(response_id)[-1].is_final
    assert current_body(response_id) is not None
