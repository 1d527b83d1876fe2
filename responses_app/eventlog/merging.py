"""Merging: the log of an ended response as fewer, larger, compressed segments."""

import zlib
from collections.abc import Iterable, Mapping, Sequence

from django.db import connection, transaction

from responses_app.eventlog.inserting import COLUMNS, ROW, row_values
from responses_app.eventlog.segments import Segment, concatenated
from responses_app.models import EventSegment, Response
from responses_app.models.segments import Codec

MERGED_BYTES = 256 * 1024  # a cursor inside a merged segment costs unpacking this much


def merge(segments: Iterable[Segment]) -> list[tuple[Segment, bytes]]:
    """Fewer, larger segments with their compressed bytes; commit times are kept.

    A segment ends with the terminal event, so that readers find the end by its mark.
    """
    groups: list[list[Segment]] = []
    size = MERGED_BYTES
    for segment in segments:
        if size >= MERGED_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += len(segment.data)
        if segment.is_final:
            size = MERGED_BYTES
    merged: list[tuple[Segment, bytes]] = []
    for group in groups:
        segment = concatenated(group)
        merged.append((segment, zlib.compress(segment.data)))
    return merged


def replace_with_merged(response_id: str, merged: Sequence[tuple[Segment, bytes]]) -> None:
    """Replace the log of an ended response by its merged form, in the caller's transaction."""
    replace_all_with_merged({response_id: merged})


def replace_all_with_merged(logs: Mapping[str, Sequence[tuple[Segment, bytes]]]) -> list[str]:
    """The same for many; a log without a merged form stays as it is, and is not tried again.

    Returns the ids of those that were neither deleted nor merged before.
    """
    with transaction.atomic():
        ids = _marked_as_merged(list(logs))
        replaced = [response_id for response_id in ids if logs[response_id]]
        EventSegment.objects.filter(response_id__in=replaced).delete()
        rows: list[tuple[int | str | bytes, ...]] = []
        for response_id in replaced:
            for segment, packed in logs[response_id]:
                rows.append(row_values(segment, Codec.ZLIB, packed))
        statement = f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) VALUES {ROW}"
        with connection.cursor() as cursor:
            cursor.executemany(statement, rows)
    return ids


def _marked_as_merged(response_ids: list[str]) -> list[str]:
    """Those of them that are neither deleted, nor merged, nor held by another session."""
    unmerged = Response.objects.filter(
        pk__in=response_ids, is_log_merged=False, deleted_at__isnull=True
    )
    locked = unmerged.select_for_update(skip_locked=True)
    ids = list(locked.values_list("pk", flat=True))
    Response.objects.filter(pk__in=ids).update(is_log_merged=True)
    return ids
