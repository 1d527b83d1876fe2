"""Ended responses are tidied some at a time, and a survey sees whether there is anything to do."""

from datetime import timedelta

import pytest
from django.utils import timezone

from responses_app.eventlog import insert_fenced, read_whole, replace_all_with_merged
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
