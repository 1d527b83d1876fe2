"""Segments: ranges of one response's events as bytes, and the SQL that stores and reads them."""

import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from django.db import connection, transaction
from django.db.models import QuerySet

from responses_app.events import INTERNAL_FRAME_PREFIX, TERMINAL_TYPES, Event, encode_frame, is_internal, split_frames
from responses_app.metrics import events_appended
from responses_app.models import EventSegment, Response
from responses_app.models.segments import FORMAT_VERSION, Codec

READ_SEGMENTS = 64  # bounds what one reader holds in memory
MERGED_BYTES = 256 * 1024  # a cursor inside a merged segment costs unpacking this much
OUTPUT_ADDED_PREFIX = b"event: response.output_item.added\n"
INSERT_ROWS = 500  # keeps a statement far below SQLite's limit of 32,766 parameters


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


_COLUMNS = (
    "response_id, attempt, first_position, last_position, first_sequence, next_sequence, "
    "is_final, format_version, codec, commit_marks, frames"
)
_ROW = "(" + ", ".join(["%s"] * 11) + ")"


def _row(segment: Segment, codec: Codec, data: bytes) -> tuple[int | str | bytes, ...]:
    return (
        segment.response_id,
        segment.attempt,
        segment.first_position,
        segment.last_position,
        segment.first_sequence,
        segment.next_sequence,
        segment.is_final,
        FORMAT_VERSION,
        int(codec),
        segment.commit_marks,
        data,
    )


def insert_fenced(segments: Sequence[Segment]) -> set[tuple[str, int]]:
    """Store segments whose attempt is still the newest; says which (response, position) were stored.

    On PostgreSQL the response rows are locked against a claim until the commit, so that the next
    attempt can't start counting before it sees these rows. SQLite has one writer at a time anyway.
    """
    stored: set[tuple[str, int]] = set()
    table, responses = EventSegment._meta.db_table, Response._meta.db_table
    lock = " FOR SHARE OF r" if connection.features.has_select_for_update else ""
    columns = ", ".join(f"b.{column}" for column in _COLUMNS.split(", "))
    with connection.cursor() as cursor:
        for start in range(0, len(segments), INSERT_ROWS):
            chunk = segments[start : start + INSERT_ROWS]
            values = ", ".join([_ROW] * len(chunk))
            cursor.execute(
                f"WITH b({_COLUMNS}) AS (VALUES {values}) "
                f"INSERT INTO {table} ({_COLUMNS}) SELECT {columns} FROM b "
                f"JOIN {responses} r ON r.id = b.response_id AND r.attempt = b.attempt{lock} "
                "RETURNING response_id, first_position",
                [value for segment in chunk for value in _row(segment, Codec.PLAIN, segment.data)],
            )
            stored.update(cursor.fetchall())
    count = sum(segment.event_count for segment in segments if (segment.response_id, segment.first_position) in stored)
    transaction.on_commit(lambda: events_appended.inc(count))
    return stored


def read_segments(response_id: str, after_position: int, limit: int = READ_SEGMENTS) -> list[Segment]:
    """The stored events behind a position, at most ``limit`` segments of them."""
    rows = _stored(response_id).filter(last_position__gt=after_position).order_by("first_position")[:limit]
    return [_loaded(row).after(after_position) for row in rows]


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
    return [_loaded(row) for row in _stored(response_id).order_by("first_position")]


def read_last(response_id: str) -> Segment | None:
    row = _stored(response_id).order_by("-first_position").first()
    return None if row is None else _loaded(row)


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


def merge(segments: Iterable[Segment]) -> list[tuple[Segment, bytes]]:
    """Fewer, larger segments with their compressed bytes; commit times are kept."""
    merged: list[list[Segment]] = []
    size = MERGED_BYTES
    for segment in segments:
        if size >= MERGED_BYTES:
            merged.append([])
            size = 0
        merged[-1].append(segment)
        size += len(segment.data)
    return [(whole := concatenated(group), zlib.compress(whole.data)) for group in merged]


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


def replace_with_merged(response_id: str, merged: Sequence[tuple[Segment, bytes]]) -> None:
    """Swap a finished log for its merged form, in the caller's transaction."""
    unmerged = Response.objects.filter(pk=response_id, is_log_merged=False, deleted_at__isnull=True)
    if not unmerged.update(is_log_merged=True) or not merged:
        return
    EventSegment.objects.filter(response_id=response_id).delete()
    values = ", ".join([_ROW] * len(merged))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {EventSegment._meta.db_table} ({_COLUMNS}) VALUES {values}",
            [value for segment, packed in merged for value in _row(segment, Codec.ZLIB, packed)],
        )
