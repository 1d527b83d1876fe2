"""Reading on from any place of a long log costs the same as at its start."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from responses_app.eventlog import merging, reading
from responses_app.eventlog.merging import merge, replace_with_merged
from responses_app.eventlog.positions import newest_positions, position_of_sequence
from responses_app.eventlog.reading import LogErased, read_on, read_segments, read_whole
from responses_app.models import EventSegment
from responses_app.protocol.events import Event
from tests.support.event_logs import (
    counted_rows,
    ending,
    explained,
    make_response,
    store,
    store_log,
    word,
)

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = 3000


def cost_of(work: Callable[[], object]) -> int:
    with counted_rows() as cost:
        work()
    return cost[0]


def test_a_page_at_the_end_costs_what_one_at_the_start_does() -> None:
    row, numbering = store_log(WORDS)
    last = numbering.next_position - 1
    at_start = cost_of(lambda: read_segments(row.pk, -1))
    at_end = cost_of(lambda: read_segments(row.pk, last - 64))
    assert at_end < 1.2 * at_start
    idle = cost_of(lambda: read_on(row.pk, last))
    assert idle < at_start / 4


def test_an_idle_look_is_one_query_that_seeks() -> None:
    row, numbering = store_log(50)
    with CaptureQueriesContext(connection) as captured:
        assert read_on(row.pk, numbering.next_position - 1) == []
    (query,) = captured.captured_queries
    plan = explained(query["sql"])
    if connection.vendor == "sqlite":
        assert plan.count("(response_id=? AND first_position") == 2, plan
    store([ending(numbering)])
    assert read_on(row.pk, numbering.next_position - 1) is None
    EventSegment.objects.filter(response_id=row.pk).delete()
    with pytest.raises(LogErased):
        read_on(row.pk, 3)


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_page_ends_behind_so_many_bytes(monkeypatch: pytest.MonkeyPatch, *, is_merged: bool) -> None:
    """A fast model stores 64 KB at once: by the number of segments, a page took 5 MB and its copies."""
    monkeypatch.setattr(reading, "PAGE_BYTES", 8_000)
    monkeypatch.setattr(merging, "MERGED_BYTES", 2_000)
    row, numbering = store_log(0)
    for _ in range(40):
        store([numbering.seal([word("w" * 1_000)])])
    store([ending(numbering)])
    whole = b"".join(segment.data for segment in read_whole(row.pk))
    if is_merged:
        replace_with_merged(row.pk, merge(read_whole(row.pk)))
    pages: list[reading.Page] = []
    position, limit = -1, reading.READ_SEGMENTS
    while (page := read_on(row.pk, position, limit)) is not None:
        assert page
        position = page[-1].last_position
        limit = reading.next_limit(limit, page)
        pages.append(page)
    assert b"".join(segment.data for page in pages for segment in page) == whole
    assert all(page.has_more for page in pages[:-1])
    if not is_merged:
        assert max(sum(segment.size for segment in page) for page in pages) < 20_000


def test_every_position_is_read_on_from_before_and_after_a_merge() -> None:
    row, numbering = store_log(40)
    store([ending(numbering)])
    whole = b"".join(segment.data for segment in read_whole(row.pk))
    frames = [frame + b"\n\n" for frame in whole.split(b"\n\n")[:-1]]
    for _ in range(2):
        for position in range(-1, len(frames) - 1):
            behind = read_segments(row.pk, position, limit=100)
            assert b"".join(segment.data for segment in behind) == b"".join(frames[position + 1 :])
            assert behind[0].first_position == position + 1
        replace_with_merged(row.pk, merge(read_whole(row.pk)))


def test_a_sequence_number_is_found_among_internal_events_in_few_steps() -> None:
    row, numbering = store_log(200)
    internal: Event = {"type": "hermes.tool.progress", "text": "x"}
    store([numbering.seal([internal]) for _ in range(WORDS)])
    store([numbering.seal([word("y"), internal]) for _ in range(100)])
    known = {}
    for segment in read_whole(row.pk):
        sequence = segment.first_sequence
        for position in range(segment.first_position, segment.last_position + 1):
            is_public = position < 203 or (position >= 203 + WORDS and (position - 203 - WORDS) % 2 == 0)
            if is_public:
                known[sequence] = position
                sequence += 1
    asked = [0, 1, 2, 3, 150, 202, 203, 204, 250, 302]
    assert [position_of_sequence(row.pk, sequence) for sequence in asked] == [known[number] for number in asked]
    assert position_of_sequence(row.pk, 303) is None
    with CaptureQueriesContext(connection) as captured:
        position_of_sequence(row.pk, 250)
    assert len(captured.captured_queries) < 20
    one_seek = cost_of(lambda: read_segments(row.pk, -1, limit=1))
    assert cost_of(lambda: position_of_sequence(row.pk, 250)) < 20 * one_seek


def test_how_far_many_logs_reach_is_one_seek_each() -> None:
    short, _ = store_log(10)
    long, _ = store_log(WORDS)
    unwritten = make_response()
    asked = [short.pk, long.pk, unwritten.pk, "resp_gone"]
    assert newest_positions(asked) == {short.pk: 12, long.pk: WORDS + 2}
    assert cost_of(lambda: newest_positions([long.pk])) < 1.5 * cost_of(lambda: newest_positions([short.pk]))
