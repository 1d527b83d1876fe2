"""Segments: ranges of one response's events as bytes, and how they are read."""

import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import islice

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from responses_app.eventlog.formats import LogFormatNotSupported
from responses_app.models import EventSegment
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.protocol.events import TERMINAL_TYPES, Event, is_internal
from responses_app.protocol.sse import FRAME_END, INTERNAL_FRAME_PREFIX, encode_frame, split_frames
from responses_app.protocol.status import OPEN

READ_SEGMENTS = 64  # bounds what one reader holds in memory
READ_ROWS = 2000  # at once, of a log that is read whole
OUTPUT_ADDED_PREFIX = b"event: response.output_item.added\n"
# JSON has no raw newline, so that no text of a response can look like this.
_TERMINAL_FRAME = re.compile(
    rb"event: (?:response\.completed|response\.failed|response\.incomplete)\n"
)

# The fields of a segment, its codec and the status of its response.
Row = tuple[str, int, int, int, int, int, bytes | memoryview, bool, str, int, int, str]


@dataclass(frozen=True, slots=True)
class Segment:
    response_id: str
    attempt: int
    first_position: int
    last_position: int
    first_sequence: int
    next_sequence: int
    data: bytes
    is_final: bool = False
    commit_marks: str = ""

    @property
    def event_count(self) -> int:
        return self.last_position - self.first_position + 1

    @property
    def is_whole(self) -> bool:
        """As many events as were written, by the blank lines that end them."""
        return self.data.count(FRAME_END) == self.event_count and self.data.endswith(FRAME_END)

    @property
    def is_public(self) -> bool:
        """Every event inside belongs to the OpenAI stream."""
        return self.next_sequence - self.first_sequence == self.event_count

    @property
    def committed_at(self) -> float:
        """When its last event was written, in epoch seconds."""
        return int(self.commit_marks.rpartition(":")[2] or 0) / 1000

    def after(self, position: int) -> "Segment":
        """What lies behind the position; the whole segment when it starts there."""
        if position < self.first_position:
            return self
        frames = split_frames(self.data)
        skip = position - self.first_position + 1
        dropped = sum(not frame.startswith(INTERNAL_FRAME_PREFIX) for frame in islice(frames, skip))
        return replace(
            self,
            first_position=position + 1,
            first_sequence=self.first_sequence + dropped,
            data=b"".join(frames[skip:]),
        )

    def timed_frames(self) -> Iterator[tuple[int, float, bytes]]:
        """Each frame with its position and when it was written, in epoch seconds."""
        marks = [mark.split(":") for mark in self.commit_marks.split(",") if mark]
        at = 0
        for position, frame in enumerate(split_frames(self.data), self.first_position):
            while at < len(marks) - 1 and int(marks[at][0]) < position:
                at += 1
            yield position, int(marks[at][1]) / 1000 if marks else 0.0, frame

    def public_frames(self) -> list[bytes]:
        frames = split_frames(self.data)
        if self.is_public:
            return frames
        return [frame for frame in frames if not frame.startswith(INTERNAL_FRAME_PREFIX)]


def commit_mark(last_position: int, at_ms: int) -> str:
    return f"{last_position}:{at_ms}"


def stamped(segment: Segment) -> Segment:
    """With the time of its commit, which is now, for its readers here and in the database alike."""
    return replace(
        segment, commit_marks=commit_mark(segment.last_position, int(time.time() * 1000))
    )


def first_output_at(segments: Iterable[Segment]) -> datetime | None:
    """When the first output item was committed, if one was."""
    for segment in segments:
        for _, at, frame in segment.timed_frames():
            if frame.startswith(OUTPUT_ADDED_PREFIX):
                return datetime.fromtimestamp(at, UTC)
    return None


class Numbering:
    """Gives the events of one attempt their positions and sequence numbers."""

    def __init__(self, response_id: str, attempt: int) -> None:
        self.response_id = response_id
        self.attempt = attempt
        self.next_position = 0
        self.next_sequence = 0

    def follow(self, last: "Segment") -> None:
        self.next_position, self.next_sequence = last.last_position + 1, last.next_sequence

    def seal(self, events: Sequence[Event]) -> Segment:
        first_position, first_sequence = self.next_position, self.next_sequence
        frames = []
        for event in events:
            if is_internal(event):
                frames.append(encode_frame(event, None))
            else:
                frames.append(encode_frame(event, self.next_sequence))
                self.next_sequence += 1
        self.next_position += len(frames)
        last_position = self.next_position - 1
        return Segment(
            response_id=self.response_id,
            attempt=self.attempt,
            first_position=first_position,
            last_position=last_position,
            first_sequence=first_sequence,
            next_sequence=self.next_sequence,
            data=b"".join(frames),
            is_final=events[-1]["type"] in TERMINAL_TYPES,
            commit_marks=commit_mark(last_position, int(time.time() * 1000)),
        )


def up_to_end(segments: Sequence[Segment]) -> list[Segment]:
    """Nothing behind the terminal event belongs to the response; earlier versions stored such events."""
    for number, segment in enumerate(segments, 1):
        if segment.is_final:
            return list(segments[:number])
    return list(segments)


def read_segments(
    response_id: str, after_position: int, limit: int = READ_SEGMENTS
) -> list[Segment]:
    """The stored events behind a position, about ``limit`` segments of them, up to the terminal one."""
    return _behind(
        response_id, _from_position(response_id, after_position + 1, limit), after_position, limit
    )


class LogErased(Exception):
    """The response was deleted while it was being read."""


def read_on(
    response_id: str, after_position: int, limit: int = READ_SEGMENTS
) -> list[Segment] | None:
    """``read_segments`` for a reader that waits: None at the end, because an ended log is not a quiet one.

    One index seek, also where nothing is new: it finds the segment that the reader has read last.
    """
    rows = _from_position(response_id, after_position + 1, limit)
    if not rows:
        raise LogErased(response_id)
    behind = _behind(response_id, rows, after_position, limit)
    if behind:
        return behind
    return None if _has_ended(rows) or _loaded(rows[-1]).is_final else []


def read_whole(response_id: str) -> list[Segment]:
    """The log up to its terminal event."""
    return up_to_end(read_stored(response_id))


def read_stored(response_id: str) -> list[Segment]:
    """Every stored event, also those that an earlier version stored behind the terminal one."""
    rows = _columns(_stored(response_id).order_by("first_position"))
    return _loaded_rows(rows.iterator(chunk_size=READ_ROWS))


def read_last(response_id: str) -> Segment | None:
    """The segment with the terminal event; of an open response the newest segment."""
    row = _columns(_stored(response_id).order_by("-first_position")).first()
    if row is None:
        return None
    segments = up_to_end(_loaded_rows([row]))
    if _has_ended([row]) and not _has_end(segments):
        segments = read_whole(response_id)
    return segments[-1]


def read_finals(response_ids: Sequence[str]) -> list[Segment]:
    known = EventSegment.objects.filter(format_version__lte=FORMAT_VERSION)
    rows = known.filter(response_id__in=response_ids, is_final=True)
    return [_loaded(row) for row in _columns(rows)]


def segment_at(response_id: str, position: int) -> QuerySet[EventSegment]:
    """The segment that holds a position, or the newest one where the log does not reach it: one index seek."""
    return _stored(response_id).filter(first_position__lte=position).order_by("-first_position")[:1]


def _from_position(response_id: str, position: int, limit: int) -> list[Row]:
    """The segment that holds a position and those behind it.

    A filter on ``last_position`` alone would walk the index from the start of the log.
    """
    start = Subquery(segment_at(response_id, position).values("first_position"))
    rows = (
        _stored(response_id)
        .filter(first_position__gte=Coalesce(start, 0))
        .order_by("first_position")
    )
    return list(_columns(rows)[: limit + 1])


def _behind(response_id: str, rows: list[Row], position: int, limit: int) -> list[Segment]:
    segments = _loaded_rows(rows)
    is_last_page = len(rows) <= limit
    if is_last_page and _has_ended(rows) and not _has_end(segments):
        last = read_last(response_id)
        if last is not None and last.is_final:
            return []  # these lie behind the terminal event, and so does the position
    return [
        segment.after(position)
        for segment in up_to_end(segments)
        if segment.last_position > position
    ]


def _stored(response_id: str) -> QuerySet[EventSegment]:
    return EventSegment.objects.filter(response_id=response_id)


def _columns(rows: QuerySet[EventSegment]) -> "QuerySet[EventSegment, Row]":
    """Those of a ``Segment`` in its order, then format, codec and status: a model instance costs more than the row."""
    names = [field.name for field in fields(Segment)]
    names[names.index("data")] = "frames"
    return rows.values_list(*names, "format_version", "codec", "response__status")


def _has_ended(rows: Sequence[Row]) -> bool:
    return bool(rows) and rows[0][-1] not in OPEN


def _has_end(segments: Sequence[Segment]) -> bool:
    return any(segment.is_final for segment in segments)


def _loaded_rows(rows: Iterable[Row]) -> list[Segment]:
    segments: list[Segment] = []
    for row in rows:
        segments += _split_behind_end(_loaded(row))
    return segments


def _loaded(row: Row) -> Segment:
    response_id, attempt, first, last, first_sequence, next_sequence, frames, is_final, marks = row[
        :9
    ]
    format_version, codec, _ = row[9:]
    if format_version > FORMAT_VERSION:
        raise LogFormatNotSupported(response_id)
    data = bytes(frames)
    if codec == Codec.ZLIB:
        data = zlib.decompress(data)
    return Segment(
        response_id, attempt, first, last, first_sequence, next_sequence, data, is_final, marks
    )


def _split_behind_end(segment: Segment) -> list[Segment]:
    """Earlier versions merged events that were stored behind the terminal one into its segment."""
    found = None if segment.is_final else _TERMINAL_FRAME.search(segment.data)
    if found is None:
        return [segment]
    size = segment.data.index(FRAME_END, found.end()) + len(FRAME_END)
    end = segment.first_position + len(split_frames(segment.data[:size])) - 1
    rest = segment.after(end)
    marks = segment.commit_marks.split(",")
    head = replace(
        segment,
        last_position=end,
        next_sequence=rest.first_sequence,
        data=segment.data[:size],
        is_final=True,
        commit_marks=",".join(mark for mark in marks if int(mark.split(":")[0]) <= end),
    )
    behind = ",".join(mark for mark in marks if int(mark.split(":")[0]) > end)
    return [head, replace(rest, commit_marks=behind)] if rest.data else [head]
