"""Merging: the log of an ended response as fewer, larger, compressed segments."""

import zlib
from collections.abc import Iterable, Sequence

from django.db import connection

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
    unmerged = Response.objects.filter(pk=response_id, is_log_merged=False, deleted_at__isnull=True)
    if not unmerged.update(is_log_merged=True) or not merged:
        return
    EventSegment.objects.filter(response_id=response_id).delete()
    values: list[int | str | bytes] = []
    for segment, packed in merged:
        values.extend(row_values(segment, Codec.ZLIB, packed))
    rows = ", ".join([ROW] * len(merged))
    statement = f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) VALUES {rows}"
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
