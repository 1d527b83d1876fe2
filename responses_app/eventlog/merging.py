"""Merging: the log of an ended response as fewer, larger, compressed segments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from responses_app.eventlog.inserting import COLUMNS, ROW, row_values
from responses_app.eventlog.segments import Segment, concatenated
from responses_app.eventlog.stored_rows import COLUMNS as READ_COLUMNS
from responses_app.eventlog.stored_rows import segment_of_row, split_after_end
from responses_app.models import EventSegment, Response
from responses_app.models.segments import Codec
from responses_app.protocol.frame_pieces import compressed

MERGED_BYTES = 256 * 1024  # a cursor inside a merged segment costs unpacking this much
PART_BYTES = 1024 * 1024  # of a long log, which is merged part by part
PART_ROWS = 4096  # most have a single word
FETCHED_ROWS = 8  # at a time: one of them may be long


def merge(segments: Iterable[Segment]) -> list[tuple[Segment, bytes]]:
    """Fewer, larger segments with their compressed bytes; commit times are kept.

    A segment ends with the terminal event, so that readers find the end by its mark.
    """
    groups: list[list[Segment]] = []
    size = MERGED_BYTES
    for segment in segments:
        if size >= MERGED_BYTES or (size and segment.size >= MERGED_BYTES):
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += segment.size
        if segment.is_final:
            size = MERGED_BYTES
    merged: list[tuple[Segment, bytes]] = []
    for group in groups:
        segment = concatenated(group)
        merged.append((segment, compressed(segment.pieces)))
    return merged


def replace_with_merged(response_id: str, merged: Sequence[tuple[Segment, bytes]]) -> None:
    """Replace the log of an ended response by its merged form, in the caller's transaction."""
    replace_all_with_merged({response_id: merged})


def replace_all_with_merged(logs: Mapping[str, Sequence[tuple[Segment, bytes]]]) -> list[str]:
    """The same for many; a log without a merged form stays as it is, and is not tried again.

    Returns the ids of those that were neither deleted nor merged before.
    """
    with transaction.atomic():
        ids = _unmerged(list(logs))
        Response.objects.filter(pk__in=ids).update(is_log_merged=True)
        replaced = [response_id for response_id in ids if logs[response_id]]
        EventSegment.objects.filter(response_id__in=replaced).delete()
        for response_id in replaced:
            _insert(logs[response_id])
    return ids


# -- a long log, part by part -------------------------------------------------------------
@dataclass(frozen=True)
class Part:
    """Some neighbouring rows of a log, and what replaces them; nothing replaces damaged ones."""

    response_id: str
    first_position: int  # of the first row
    last_position: int
    row_count: int
    merged: list[tuple[Segment, bytes]]


def read_part(response_id: str, after_position: int) -> Part | None:
    """The next rows and their merged form; None behind the last one."""
    behind = EventSegment.objects.filter(response_id=response_id, first_position__gt=after_position)
    rows = behind.order_by("first_position").values_list(*READ_COLUMNS)
    found: list[Segment] = []
    size = 0
    for row in rows[:PART_ROWS].iterator(chunk_size=FETCHED_ROWS):
        found.append(segment_of_row(row))
        size += found[-1].size
        if size >= PART_BYTES:
            break
    if not found:
        return None
    merged: list[tuple[Segment, bytes]] = []
    if all(segment.is_whole for segment in found):
        segments: list[Segment] = []
        for segment in found:
            segments += split_after_end(segment)
        merged = merge(segments)
    return Part(response_id, found[0].first_position, found[-1].last_position, len(found), merged)


def replace_part(part: Part) -> bool:
    """False where the log is not to be merged any more, or another process merges it."""
    with transaction.atomic():
        if not _unmerged([part.response_id]):
            return False
        if not part.merged:
            return True
        replaced = EventSegment.objects.filter(
            response_id=part.response_id,
            first_position__gte=part.first_position,
            first_position__lte=part.last_position,
        )
        count, _ = replaced.delete()
        if count != part.row_count:
            transaction.set_rollback(True)
            return False
        _insert(part.merged)
    return True


# -- steps ------------------------------------------------------------------------------
def _insert(merged: Sequence[tuple[Segment, bytes]]) -> None:
    rows = [row_values(segment, Codec.ZLIB, packed) for segment, packed in merged]
    statement = f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) VALUES {ROW}"
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _unmerged(response_ids: list[str]) -> list[str]:
    """Those of them that are neither deleted, nor merged, nor held by another session."""
    unmerged = Response.objects.filter(
        pk__in=response_ids, is_log_merged=False, deleted_at__isnull=True
    )
    locked = unmerged.select_for_update(skip_locked=True)
    return list(locked.values_list("pk", flat=True))
