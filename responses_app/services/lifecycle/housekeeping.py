"""Housekeeping: what is done with a log once its response has ended."""

from datetime import timedelta
from functools import partial

from django.utils import timezone

from responses_app.database import database
from responses_app.eventlog import (
    Segment,
    merge,
    read_part,
    read_stored_logs,
    replace_all_with_merged,
    replace_part,
)
from responses_app.models import IdempotencyKey, Kind, Response, ResponseQuerySet
from responses_app.services.idempotency import forget_expired, has_expired
from responses_app.services.lifecycle.delete import ERASED_AT_ONCE, erase, erase_all
from responses_app.services.search.index import read_words, store_words

# Merged in one transaction, which the writes of all streams wait for.
MERGED_AT_ONCE = 50
MERGED_EVENTS = 2_000
TIDY_AFTER = timedelta(seconds=5)  # readers in other processes may still follow the live log


async def erase_some() -> bool:
    """Erase a few deleted responses; False when there are none. Logs to merge come later."""
    response_ids = await database.read(_next_deleted)
    if response_ids:
        await database.write(partial(erase_all, response_ids))
    return bool(response_ids)


def _next_deleted() -> list[str]:
    rows = _untidy().filter(deleted_at__isnull=False).order_by("finished_at")
    return list(rows.values_list("pk", flat=True)[:ERASED_AT_ONCE])


async def tidy_some() -> bool:
    """Merge some logs, or forget old requests; False when there is nothing to do."""
    rows = await database.read(_next_untidy)
    if not rows:
        is_due = await database.read(has_expired)
        if is_due:
            await database.write(_forget)
        return is_due
    compactions = [row.pk for row in rows if row.kind == Kind.COMPACTION]
    if compactions:
        await database.write(partial(_erase_spent, compactions))
    if rows[0].last_position >= MERGED_EVENTS:
        await _tidy_long(rows[0].pk)
        return True
    response_ids = [row.pk for row in rows]
    merged = await database.read(_merged, response_ids)
    words = await database.read(read_words, response_ids)
    await database.write(partial(_store_tidied, merged, words))
    return True


async def _tidy_long(response_id: str) -> None:
    """Part by part: in one transaction it would take its whole size, and hold up all streams."""
    position = -1
    while (part := await database.read(read_part, response_id, position)) is not None:
        if not await database.write(partial(replace_part, part)):
            return  # the next sweep looks again
        position = part.last_position
    words = await database.read(read_words, [response_id])
    await database.write(partial(_store_tidied, {response_id: []}, words))


def _store_tidied(merged: dict[str, list[tuple[Segment, bytes]]], words: dict[str, str]) -> None:
    """The logs and the search index; what was deleted meanwhile stays out of both."""
    kept = replace_all_with_merged(merged)
    store_words({pk: words[pk] for pk in kept if pk in words})


def _merged(response_ids: list[str]) -> dict[str, list[tuple[Segment, bytes]]]:
    """Nothing for a damaged log: a broken event would break the one it is joined to."""
    merged: dict[str, list[tuple[Segment, bytes]]] = {}
    for response_id, segments in read_stored_logs(response_ids).items():
        is_whole = all(segment.is_whole for segment in segments)
        merged[response_id] = merge(segments) if is_whole else []
    return merged


def _next_untidy() -> list[Response]:
    """One long log, or several short ones: as many as their events allow."""
    kept = _untidy().filter(deleted_at__isnull=True).in_known_format()
    rows = kept.only("pk", "kind", "last_position").order_by("finished_at")[:MERGED_AT_ONCE]
    taken: list[Response] = []
    events = 0
    for row in rows:
        events += row.last_position + 1
        if taken and events > MERGED_EVENTS:
            break
        taken.append(row)
    return taken


def _untidy() -> ResponseQuerySet:
    return Response.objects.filter(is_log_merged=False, finished_at__lt=timezone.now() - TIDY_AFTER)


def _forget() -> None:
    _erase_spent(forget_expired())


def _erase_spent(response_ids: list[str]) -> bool:
    """Compactions are read by repeated requests alone: erase those whose keys have expired."""
    current_keys = IdempotencyKey.objects.current().filter(response_id__in=response_ids)
    compactions = Response.objects.filter(pk__in=response_ids, kind=Kind.COMPACTION)
    spent = compactions.exclude(pk__in=current_keys.values("response_id"))
    for row in spent.filter(deleted_at__isnull=True):
        Response.objects.filter(pk=row.pk).update(deleted_at=timezone.now())
        erase(row.pk)  # one that still runs is erased when it has ended
    return spent.exists()
