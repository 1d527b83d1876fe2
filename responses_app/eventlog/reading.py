"""Reading stored segments: by position, whole, or only the newest."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from responses_app.eventlog.segments import Segment, up_to_end
from responses_app.eventlog.stored_rows import (
    COLUMNS,
    Row,
    joined_segments,
    segment_of_row,
    split_after_end,
)
from responses_app.models import EventSegment, Response
from responses_app.models.compiled import CompiledQuery
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.protocol.status import OPEN

READ_SEGMENTS = 64  # of the first page; merged segments are long
MAX_READ_SEGMENTS = 4096  # a log that is not merged yet may have a segment for each word
READ_BYTES = 256 * 1024  # a page of more bytes has as few segments as the first
# Bounds what one reader holds in memory: a page ends behind so many bytes.
PAGE_BYTES = 1024 * 1024
PACKED_RATIO = 8  # as a rule a packed segment has so many times its bytes
_PACKED = int(Codec.ZLIB)
READ_ROWS = 2000  # fetched at once when a whole log is read
PAGE_COLUMNS = (*COLUMNS[:-1], "status")  # the status is read once, not joined with each row


class LogErased(Exception):
    """The response was deleted while a reader followed its log."""


class Page(list[Segment]):
    """The next events of a log; there may be more of them."""

    def __init__(self, segments: Iterable[Segment] = (), *, has_more: bool = False) -> None:
        super().__init__(segments)
        self.has_more = has_more


def read_segments(response_id: str, after_position: int, limit: int = READ_SEGMENTS) -> Page:
    """The stored events after a position, about ``limit`` segments, up to the terminal event."""
    rows, has_more = _rows_from(response_id, after_position + 1, limit)
    found = _segments_after(response_id, rows, _segments(rows), after_position, has_more)
    return Page(found, has_more=has_more)


def read_on(response_id: str, after_position: int, limit: int = READ_SEGMENTS) -> Page | None:
    """``read_segments`` for a reader that waits: None at the end of the log, [] if nothing is new.

    One index seek, also where nothing is new: it finds the segment that the reader has read last.
    Rows that follow each other come as one segment.
    """
    rows, has_more = _rows_from(response_id, after_position + 1, limit)
    if not rows:
        raise LogErased(response_id)
    joined = joined_segments(rows, after_position)
    segments = _segments_after(response_id, rows, joined, after_position, has_more)
    if segments:
        return Page(segments, has_more=has_more)
    if _has_ended(rows) or segment_of_row(rows[-1]).is_final:
        return None
    return Page()


def next_limit(limit: int, page: Page) -> int:
    """For the page after this one: more segments if these were short, and as many as asked for."""
    size = sum(segment.size for segment in page)
    if not page.has_more or size > READ_BYTES:
        return READ_SEGMENTS
    return min(16 * limit, MAX_READ_SEGMENTS)


def read_whole(response_id: str) -> list[Segment]:
    """The log up to its terminal event."""
    return up_to_end(read_stored(response_id))


def read_stored(response_id: str) -> list[Segment]:
    """Every stored event, also those that an earlier version stored after the terminal one."""
    rows = _of_response(response_id).order_by("first_position").values_list(*COLUMNS)
    return _segments(rows.iterator(chunk_size=READ_ROWS))


def read_stored_logs(response_ids: Sequence[str]) -> dict[str, list[Segment]]:
    """``read_stored`` for several responses."""
    logs: dict[str, list[Segment]] = {response_id: [] for response_id in response_ids}
    found = EventSegment.objects.filter(response_id__in=response_ids)
    rows = found.order_by("response_id", "first_position").values_list(*COLUMNS)
    for row in rows.iterator(chunk_size=READ_ROWS):
        logs[row[0]] += split_after_end(segment_of_row(row))
    return logs


def read_last(response_id: str) -> Segment | None:
    """The segment with the terminal event; of an open response the newest segment."""
    row = _of_response(response_id).order_by("-first_position").values_list(*COLUMNS).first()
    if row is None:
        return None
    segments = up_to_end(_segments([row]))
    if _has_ended([row]) and not segments[-1].is_final:
        segments = read_whole(response_id)
    return segments[-1]


def read_finals(response_ids: Sequence[str]) -> list[Segment]:
    """The segments with the terminal events of ended responses, in a format that is known."""
    known = EventSegment.objects.filter(format_version__lte=FORMAT_VERSION)
    finals = known.filter(response_id__in=response_ids, is_final=True)
    return [segment_of_row(row) for row in finals.values_list(*COLUMNS)]


def segment_at(response_id: str, position: int) -> QuerySet[EventSegment]:
    """The segment that holds a position, or the newest one if the log is shorter: one index seek."""
    before = _of_response(response_id).filter(first_position__lte=position)
    return before.order_by("-first_position")[:1]


def _rows_from(response_id: str, position: int, limit: int) -> tuple[list[Row], bool]:
    """The segment that holds a position and those after it, and whether there may be more.

    A filter on ``last_position`` alone would walk the index from the start of the log.
    """
    size = 0
    count = 1
    with _page(limit).executed(response_id, position) as cursor:
        # It may lie before the position, and does not count.
        rows: list[Any] = cursor.fetchmany(1)
        while size < PAGE_BYTES:
            found = cursor.fetchmany(count)
            rows += found
            if len(found) < count:
                return rows, len(rows) > limit
            size += _size_of(found)
            count = len(rows)
    return rows, True


def _size_of(rows: Sequence[Row]) -> int:
    size = sum([len(row[6]) for row in rows])
    if rows[-1][10] == _PACKED:  # a log is packed from its start
        size *= PACKED_RATIO
    return size


@lru_cache
def _page(limit: int) -> CompiledQuery:
    """Readers use few limits."""

    def rows_from(response_id: str, position: int) -> QuerySet[EventSegment, Any]:
        start = Subquery(segment_at(response_id, position).values("first_position"))
        status = Subquery(Response.objects.filter(pk=response_id).values("status"))
        found = _of_response(response_id).filter(first_position__gte=Coalesce(start, 0))
        rows = found.annotate(status=status).order_by("first_position")
        return rows.values_list(*PAGE_COLUMNS)[: limit + 1]

    return CompiledQuery(rows_from, is_converted=False)


def _segments_after(
    response_id: str, rows: list[Row], found: list[Segment], position: int, has_more: bool
) -> list[Segment]:
    """The segments that were found in the rows, up to the terminal event."""
    segments = up_to_end(found)
    if not has_more and _has_ended(rows) and not segments[-1].is_final:
        last = read_last(response_id)
        if last is not None and last.is_final:
            return []  # the rows lie after the terminal event, and so does the position
    return [segment.after(position) for segment in segments if segment.last_position > position]


def _of_response(response_id: str) -> QuerySet[EventSegment]:
    return EventSegment.objects.filter(response_id=response_id)


def _has_ended(rows: Sequence[Row]) -> bool:
    return bool(rows) and rows[0][-1] not in OPEN


def _segments(rows: Iterable[Row]) -> list[Segment]:
    segments: list[Segment] = []
    for row in rows:
        segments += split_after_end(segment_of_row(row))
    return segments
