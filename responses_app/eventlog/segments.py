"""Segments: ranges of one response's events as bytes, and how they are read."""

import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from django.db.models import F, QuerySet

from responses_app.events import (
    FRAME_END,
    INTERNAL_FRAME_PREFIX,
    TERMINAL_TYPES,
    Event,
    encode_frame,
    is_internal,
    split_frames,
)
from responses_app.models import EventSegment
from responses_app.models.segments import Codec
from responses_app.states import OPEN

READ_SEGMENTS = 64  # bounds what one reader holds in memory
OUTPUT_ADDED_PREFIX = b"event: response.output_item.added\n"
# JSON has no raw newline, so that no text of a response can look like this.
_TERMINAL_FRAME = re.compile(rb"event: (?:response\.completed|response\.failed|response\.incomplete)\n")


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
    def is_public(self) -> bool:
        """Every event inside belongs to the OpenAI stream."""
        return self.next_sequence - self.first_sequence == self.event_count

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
    return replace(segment, commit_marks=commit_mark(segment.last_position, int(time.time() * 1000)))


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


def read_segments(response_id: str, after_position: int, limit: int = READ_SEGMENTS) -> list[Segment]:
    """The stored events behind a position, at most ``limit`` segments of them, up to the terminal one."""
    found = _stored(response_id).filter(last_position__gt=after_position)
    rows = list(_with_status(found).order_by("first_position")[:limit])
    segments = _loaded_rows(rows, after_position)
    is_last_page = len(rows) < limit
    if is_last_page and _has_ended(rows) and not _has_end(segments):
        last = read_last(response_id)
        if last is not None and last.is_final:
            return []  # these lie behind the terminal event, and so does the position
    return up_to_end(segments)


class LogErased(Exception):
    """The response was deleted while somebody read it."""


def read_on(response_id: str, after_position: int) -> list[Segment] | None:
    """``read_segments`` for somebody who waits: None at the end, for an ended log is not a quiet one."""
    segments = read_segments(response_id, after_position)
    if segments:
        return segments
    last = read_last(response_id)
    if last is None:
        raise LogErased(response_id)
    if last.last_position > after_position:
        return read_segments(response_id, after_position)  # came between the two queries
    return None if last.is_final else []


def read_whole(response_id: str) -> list[Segment]:
    """The log up to its terminal event."""
    return up_to_end(read_stored(response_id))


def read_stored(response_id: str) -> list[Segment]:
    """Every stored event, also those that an earlier version stored behind the terminal one."""
    return _loaded_rows(_stored(response_id).order_by("first_position"))


def read_last(response_id: str) -> Segment | None:
    """The segment with the terminal event; of an open response the newest segment."""
    row = _with_status(_stored(response_id)).order_by("-first_position").first()
    if row is None:
        return None
    segments = up_to_end(_loaded_rows([row]))
    if _has_ended([row]) and not _has_end(segments):
        segments = read_whole(response_id)
    return segments[-1]


def read_finals(response_ids: Sequence[str]) -> list[Segment]:
    rows = EventSegment.objects.filter(response_id__in=response_ids, is_final=True)
    return [_loaded(row) for row in rows]


def position_of_sequence(response_id: str, sequence: int) -> int | None:
    """The log position of a public event, or None when the log does not reach it."""
    row = _stored(response_id).filter(next_sequence__gt=sequence).order_by("first_position").first()
    if row is None:
        return None
    segment = _loaded(row)
    at = segment.first_sequence - 1
    for position, frame in enumerate(split_frames(segment.data), segment.first_position):
        at += not frame.startswith(INTERNAL_FRAME_PREFIX)
        if at == sequence:
            return position
    return None


def _stored(response_id: str) -> QuerySet[EventSegment]:
    return EventSegment.objects.filter(response_id=response_id)


def _with_status(rows: QuerySet[EventSegment]) -> QuerySet[EventSegment]:
    return rows.annotate(response_status=F("response__status"))


def _has_ended(rows: Sequence[EventSegment]) -> bool:
    return bool(rows) and rows[0].response_status not in OPEN  # type: ignore[attr-defined]


def _has_end(segments: Sequence[Segment]) -> bool:
    return any(segment.is_final for segment in segments)


def _loaded_rows(rows: Iterable[EventSegment], after_position: int = -1) -> list[Segment]:
    segments: list[Segment] = []
    for row in rows:
        for segment in _split_behind_end(_loaded(row)):
            if segment.last_position > after_position:
                segments.append(segment.after(after_position))
    return segments


def _loaded(row: EventSegment) -> Segment:
    data = bytes(row.frames)
    return Segment(
        response_id=row.response_id,
        attempt=row.attempt,
        first_position=row.first_position,
        last_position=row.last_position,
        first_sequence=row.first_sequence,
        next_sequence=row.next_sequence,
        data=zlib.decompress(data) if row.codec == Codec.ZLIB else data,
        is_final=row.is_final,
        commit_marks=row.commit_marks,
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


def concatenated(group: list[Segment]) -> Segment:
    """Neighbouring segments as one."""
    last = group[-1]
    return replace(
        group[0],
        last_position=last.last_position,
        next_sequence=last.next_sequence,
        is_final=last.is_final,
        data=b"".join(segment.data for segment in group),
        commit_marks=",".join(filter(None, (segment.commit_marks for segment in group))),
    )
