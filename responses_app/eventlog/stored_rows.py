"""Rows of the log: from the columns of the database to segments."""

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from responses_app.eventlog.segments import Segment
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.protocol.errors import SERVER, ApiError
from responses_app.protocol.frame_pieces import gathered
from responses_app.protocol.sse import FRAME_END, split_frames

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


def joined_segments(rows: Iterable[Row], position: int) -> list[Segment]:
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
        return split_after_end(first)
    last = run[-1]
    whole = replace(
        first,
        last_position=last[3],
        next_sequence=last[5],
        is_final=bool(last[7]),
        pieces=gathered([bytes(row[6]) for row in run]),
        commit_marks=",".join([row[8] for row in run if row[8]]),
    )
    return split_after_end(whole)


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
        pieces=(data,),
        is_final=bool(row[7]),
        commit_marks=row[8],
    )


def split_after_end(segment: Segment) -> list[Segment]:
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
        pieces=(segment.data[:size],),
        is_final=True,
        commit_marks=",".join(marks_before),
    )
    if not rest.size:
        return [head]
    return [head, replace(rest, commit_marks=",".join(marks_after))]
