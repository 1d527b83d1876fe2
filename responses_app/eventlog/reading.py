"""Reading stored segments: by position, whole, or only the newest."""

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from responses_app.eventlog.segments import Segment, up_to_end
from responses_app.models import EventSegment
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.protocol.errors import SERVER, ApiError
from responses_app.protocol.sse import FRAME_END, split_frames
from responses_app.protocol.status import OPEN

READ_SEGMENTS = 64  # of the first page; merged segments are long
MAX_READ_SEGMENTS = 4096  # a log that is not merged yet may have a segment for each word
READ_BYTES = 256 * 1024  # bounds what one reader holds in memory, to about sixteen times as much
READ_ROWS = 2000  # fetched at once when a whole log is read
# JSON has no raw newline, so that no text of a response can look like this.
_TERMINAL_FRAME = re.compile(
    rb"event: (?:response\.completed|response\.failed|response\.incomplete)\n"
)

# A model instance costs more than a tuple: the fields of a segment, then format, codec and status.
COLUMNS = (
    "response_id",
    "attempt",
    "first_position",
    "last_position",
    "first_sequence",
    "next_sequence",
    "frames",
    "is_final",
    "commit_marks",
    "format_version",
    "codec",
    "response__status",
)
_PLAIN = int(Codec.PLAIN)
Row = tuple[str, int, int, int, int, int, bytes | memoryview, bool, str, int, int, str]


class LogErased(Exception):
    """The response was deleted while a reader followed its log."""


class LogFormatNotSupported(ApiError):
    """A newer version wrote this log, and was then replaced by this one."""

    status = 503
    type = SERVER
    code = "log_format_not_supported"
    headers = {"x-should-retry": "false"}

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"The events of {response_id} are in the format of a newer version of this server. "
            "It is kept as it is; that version can read it and go on with it."
        )


def read_segments(
    response_id: str, after_position: int, limit: int = READ_SEGMENTS
) -> list[Segment]:
    """The stored events after a position, about ``limit`` segments, up to the terminal event."""
    rows = _rows_from(response_id, after_position + 1, limit)
    return _segments_after(response_id, rows, _segments(rows), after_position, limit)


def read_on(
    response_id: str, after_position: int, limit: int = READ_SEGMENTS
) -> list[Segment] | None:
    """``read_segments`` for a reader that waits: None at the end of the log, [] if nothing is new.

    One index seek, also where nothing is new: it finds the segment that the reader has read last.
    Rows that follow each other come as one segment.
    """
    rows = _rows_from(response_id, after_position + 1, limit)
    if not rows:
        raise LogErased(response_id)
    joined = _joined_segments(rows, after_position)
    segments = _segments_after(response_id, rows, joined, after_position, limit)
    if segments:
        return segments
    if _has_ended(rows) or segment_of_row(rows[-1]).is_final:
        return None
    return []


def is_last_page(limit: int, page: Sequence[Segment]) -> bool:
    """Each stored row has an event at least; rows that were joined do not count as segments."""
    return sum(segment.event_count for segment in page) < limit


def next_limit(limit: int, page: Sequence[Segment]) -> int:
    """For the page after this one: more segments if these were short, and as many as asked for."""
    size = sum(len(segment.data) for segment in page)
    if is_last_page(limit, page) or size > READ_BYTES:
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
        logs[row[0]] += _split_after_end(segment_of_row(row))
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


def _rows_from(response_id: str, position: int, limit: int) -> list[Row]:
    """The segment that holds a position and those after it.

    A filter on ``last_position`` alone would walk the index from the start of the log.
    """
    start = Subquery(segment_at(response_id, position).values("first_position"))
    found = _of_response(response_id).filter(first_position__gte=Coalesce(start, 0))
    rows = found.order_by("first_position").values_list(*COLUMNS)
    return list(rows[: limit + 1])


def _segments_after(
    response_id: str, rows: list[Row], found: list[Segment], position: int, limit: int
) -> list[Segment]:
    """The segments that were found in the rows, up to the terminal event."""
    segments = up_to_end(found)
    has_all_rows = len(rows) <= limit
    if has_all_rows and _has_ended(rows) and not segments[-1].is_final:
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
        segments += _split_after_end(segment_of_row(row))
    return segments


def _joined_segments(rows: Iterable[Row], position: int) -> list[Segment]:
    """Rows after the position that follow each other are one segment: most have a single word."""
    segments: list[Segment] = []
    run: list[Row] = []
    for row in rows:
        if run and not _continues(run[-1], row, position):
            segments += _joined(run)
            run = []
        run.append(row)
    if run:
        segments += _joined(run)
    return segments


def _continues(last: Row, row: Row, position: int) -> bool:
    is_neighbour = row[2] == last[3] + 1 and row[4] == last[5] and row[1] == last[1]
    is_plain = row[10] == last[10] == _PLAIN and row[9] == last[9]
    return is_neighbour and is_plain and not last[7] and last[3] > position


def _joined(run: list[Row]) -> list[Segment]:
    first = segment_of_row(run[0])
    if len(run) == 1:
        return _split_after_end(first)
    last = run[-1]
    whole = replace(
        first,
        last_position=last[3],
        next_sequence=last[5],
        is_final=last[7],
        data=b"".join([row[6] for row in run]),
        commit_marks=",".join([row[8] for row in run if row[8]]),
    )
    return _split_after_end(whole)


def segment_of_row(row: Sequence[Any]) -> Segment:
    response_id = row[0]
    frames = row[6]
    format_version = row[9]
    codec = row[10]
    if format_version > FORMAT_VERSION:
        raise LogFormatNotSupported(response_id)
    data = bytes(frames)
    if codec == Codec.ZLIB:
        data = zlib.decompress(data)
    return Segment(
        response_id=response_id,
        attempt=row[1],
        first_position=row[2],
        last_position=row[3],
        first_sequence=row[4],
        next_sequence=row[5],
        data=data,
        is_final=row[7],
        commit_marks=row[8],
    )


def _split_after_end(segment: Segment) -> list[Segment]:
    """Earlier versions merged events that were stored after the terminal one into its segment."""
    if segment.is_final:
        return [segment]
    found = _TERMINAL_FRAME.search(segment.data)
    if found is None:
        return [segment]
    size = segment.data.index(FRAME_END, found.end()) + len(FRAME_END)
    end = segment.first_position + len(split_frames(segment.data[:size])) - 1
    rest = segment.after(end)
    marks_before: list[str] = []
    marks_after: list[str] = []
    for mark in segment.commit_marks.split(","):
        if int(mark.partition(":")[0]) <= end:
            marks_before.append(mark)
        else:
            marks_after.append(mark)
    head = replace(
        segment,
        last_position=end,
        next_sequence=rest.first_sequence,
        data=segment.data[:size],
        is_final=True,
        commit_marks=",".join(marks_before),
    )
    if not rest.data:
        return [head]
    return [head, replace(rest, commit_marks=",".join(marks_after))]
