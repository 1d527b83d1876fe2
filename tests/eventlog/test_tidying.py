"""Ended responses are tidied some at a time, and a survey sees whether there is anything to do."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from responses_app.eventlog import (
    insert_fenced,
    merging,
    read_part,
    read_whole,
    replace_all_with_merged,
    replace_part,
)
from responses_app.eventlog.store import EventStore
from responses_app.models import EventSegment, IdempotencyKey, Response
from responses_app.services.lifecycle import housekeeping
from responses_app.services.lifecycle.settle import settle
from responses_app.services.lifecycle.survey import survey
from tests.support.stored_logs import COMPLETED_BODY, delta, final, make_response, opening

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(minutes=1)


def ended_response(words: int = 3) -> str:
    """Each word in a segment of its own, as a slow model leaves them."""
    row = make_response()
    numbering, first = opening(row)
    assert insert_fenced([first])
    for _ in range(words):
        assert insert_fenced([delta(numbering)])
    settle(row, final(numbering), COMPLETED_BODY)
    return row.pk


def age(*response_ids: str) -> None:
    Response.objects.filter(pk__in=response_ids).update(finished_at=timezone.now() - LONG_AGO)


def tidy() -> list[str]:
    ids = [row.pk for row in housekeeping._next_untidy()]
    replace_all_with_merged(housekeeping._merged(ids))
    return ids


def segments(response_id: str) -> int:
    return EventSegment.objects.filter(response_id=response_id).count()


def test_short_logs_are_merged_together_and_read_as_before() -> None:
    ids = [ended_response(words) for words in (1, 2, 3)]
    age(*ids)
    before = {response_id: b"".join(part.data for part in read_whole(response_id)) for response_id in ids}
    assert sorted(tidy()) == sorted(ids)
    for response_id in ids:
        assert segments(response_id) == 1
        assert b"".join(part.data for part in read_whole(response_id)) == before[response_id]
    assert tidy() == []


def test_a_long_log_is_merged_alone() -> None:
    long, *short = [ended_response() for _ in range(3)]
    age(long, *short)
    Response.objects.filter(pk=long).update(last_position=housekeeping.MERGED_EVENTS)
    first = timezone.now() - 2 * LONG_AGO
    Response.objects.filter(pk=long).update(finished_at=first)
    assert tidy() == [long]
    assert sorted(tidy()) == sorted(short)


def test_a_damaged_log_and_one_that_was_deleted_meanwhile_stay_as_they_are() -> None:
    damaged, deleted, whole = [ended_response() for _ in range(3)]
    age(damaged, deleted, whole)
    EventSegment.objects.filter(response_id=damaged, first_position=1).update(frames=b"event: half")
    merged = housekeeping._merged([damaged, deleted, whole])
    Response.objects.filter(pk=deleted).update(deleted_at=timezone.now())
    replace_all_with_merged(merged)
    assert (segments(damaged), segments(deleted), segments(whole)) == (5, 5, 1)
    assert Response.objects.filter(is_log_merged=True).count() == 2  # the damaged one is not tried again


@pytest.mark.django_db(transaction=True)
async def test_a_long_log_is_merged_part_by_part_and_reads_as_before(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction it took ten times its size of memory, and held up every stream."""
    monkeypatch.setattr(merging, "PART_BYTES", 2_000)
    monkeypatch.setattr(merging, "MERGED_BYTES", 500)
    response_id = await store.database.write(partial(ended_response, 60))
    before = await store.database.read(read_whole, response_id)
    position, parts = -1, 0
    while (part := await store.database.read(read_part, response_id, position)) is not None:
        assert sum(segment.size for segment, _ in part.merged) < 3_000
        assert await store.database.write(partial(replace_part, part))
        # A reader sees the whole log all the time.
        between = await store.database.read(read_whole, response_id)
        assert b"".join(one.data for one in between) == b"".join(one.data for one in before)
        position, parts = part.last_position, parts + 1
    assert parts > 3
    after = await store.database.read(read_whole, response_id)
    assert len(after) < len(before) // 2
    assert ",".join(one.commit_marks for one in after) == ",".join(one.commit_marks for one in before)
    assert after[-1].is_final


def test_a_damaged_part_stays_as_it_is_and_the_others_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "PART_BYTES", 500)
    response_id = ended_response(20)
    EventSegment.objects.filter(response_id=response_id, first_position=1).update(frames=b"event: half")
    position = -1
    while (part := read_part(response_id, position)) is not None:
        assert replace_part(part)
        position = part.last_position
    first = EventSegment.objects.get(response_id=response_id, first_position=1)
    assert bytes(first.frames) == b"event: half"
    assert segments(response_id) < 22


def test_a_part_is_not_replaced_once_the_log_is_deleted_merged_or_changed() -> None:
    deleted, merged, changed = [ended_response() for _ in range(3)]
    parts = [read_part(response_id, -1) for response_id in (deleted, merged, changed)]
    Response.objects.filter(pk=deleted).update(deleted_at=timezone.now())
    Response.objects.filter(pk=merged).update(is_log_merged=True)
    EventSegment.objects.filter(response_id=changed, first_position=1).delete()
    for part in parts:
        assert part is not None
        assert not replace_part(part)
    assert [segments(response_id) for response_id in (deleted, merged, changed)] == [5, 5, 4]


def test_a_survey_sees_what_is_open_what_is_unmerged_and_what_has_expired() -> None:
    assert (survey().has_open, survey().is_untidy) == (False, False)
    row = make_response()
    assert (survey().has_open, survey().is_untidy) == (True, False)
    numbering, first = opening(row)
    insert_fenced([first])
    settle(row, final(numbering), COMPLETED_BODY)
    assert (survey().has_open, survey().is_untidy) == (False, False)  # readers elsewhere may still follow it
    age(row.pk)
    assert survey().is_untidy
    tidy()
    assert not survey().is_untidy
    key = IdempotencyKey(owner=row.owner, digest="d", response=row, expires_at=timezone.now() + LONG_AGO)
    key.save()
    assert not survey().is_untidy
    IdempotencyKey.objects.update(expires_at=timezone.now() - LONG_AGO)
    assert survey().is_untidy
