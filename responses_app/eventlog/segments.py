"""Segments: ranges of one response's events, as ready-made SSE bytes."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from responses_app.protocol.events import INTERNAL_PREFIX, TERMINAL_TYPES, USAGE_ESTIMATED, Event
from responses_app.protocol.frame_pieces import (
    LONG_BYTES,
    FrameEncoder,
    Pieces,
    framed,
    gathered,
)
from responses_app.protocol.sse import FRAME_END, INTERNAL_FRAME_PREFIX, split_frames
from responses_app.protocol.text_frames import TextFrames

# No JSON has a raw newline: this is in no other frame.
USAGE_ESTIMATED_FRAME = b"event: %s\n" % USAGE_ESTIMATED.encode()
OUTPUT_ADDED_PREFIX = b"event: response.output_item.added\n"


@dataclass(frozen=True, slots=True)
class Segment:
    response_id: str
    attempt: int
    first_position: int
    last_position: int
    first_sequence: int
    next_sequence: int
    pieces: Pieces  # the frames: in one piece, unless an event is long
    is_final: bool = False
    commit_marks: str = ""

    @property
    def data(self) -> bytes:
        """All frames; a copy where they are in pieces."""
        return b"".join(self.pieces)

    @property
    def size(self) -> int:
        if len(self.pieces) == 1:  # nearly always
            return len(self.pieces[0])
        return sum(map(len, self.pieces))

    @property
    def event_count(self) -> int:
        return self.last_position - self.first_position + 1

    @property
    def is_whole(self) -> bool:
        """As many events as were written, by the blank lines that end them."""
        return self.data.count(FRAME_END) == self.event_count and self.data.endswith(FRAME_END)

    @property
    def is_usage_estimated(self) -> bool:
        """Of a final segment: whether an upstream left tokens of the response uncounted."""
        return any(USAGE_ESTIMATED_FRAME in piece for piece in self.pieces)

    @property
    def is_public(self) -> bool:
        """Every event inside belongs to the OpenAI stream."""
        return self.next_sequence - self.first_sequence == self.event_count

    @property
    def committed_at(self) -> float:
        """When its last event was written, in epoch seconds."""
        return int(self.commit_marks.rpartition(":")[2] or 0) / 1000

    def after(self, position: int) -> "Segment":
        """The events after the position; the whole segment when it starts there."""
        if position < self.first_position:
            return self
        frames = split_frames(self.data)
        skip = position - self.first_position + 1
        skipped_sequences = 0
        for frame in frames[:skip]:
            if not frame.startswith(INTERNAL_FRAME_PREFIX):
                skipped_sequences += 1
        return replace(
            self,
            first_position=position + 1,
            first_sequence=self.first_sequence + skipped_sequences,
            pieces=(b"".join(frames[skip:]),),
        )

    def timed_frames(self) -> Iterator[tuple[int, float, bytes]]:
        """Each frame with its position and when it was written, in epoch seconds."""
        marks = [mark.split(":") for mark in self.commit_marks.split(",") if mark]
        at = 0
        for position, frame in enumerate(split_frames(self.data), self.first_position):
            while at < len(marks) - 1 and int(marks[at][0]) < position:
                at += 1
            written_at = 0.0
            if marks:
                written_at = int(marks[at][1]) / 1000
            yield position, written_at, frame

    def public_frames(self) -> list[bytes]:
        frames = split_frames(self.data)
        if self.is_public:
            return frames
        return [frame for frame in frames if not frame.startswith(INTERNAL_FRAME_PREFIX)]

    def public_pieces(self) -> Pieces:
        """The public frames, without a copy of a long text."""
        if self.is_public:
            return self.pieces
        if len(self.pieces) == 1:
            return tuple(self.public_frames())
        public: list[bytes] = []
        for frame in framed(self.pieces):
            if not frame[0].startswith(INTERNAL_FRAME_PREFIX):
                public += frame
        return tuple(public)

    def rows(self) -> list["Segment"]:
        """As it is stored: each long event in a row of its own, which is read and written alone."""
        if len(self.pieces) == 1:
            return [self]
        rows: list[Segment] = []
        for frame in framed(self.pieces):
            row = self._row(rows, frame)
            if rows and row.size + rows[-1].size < LONG_BYTES:
                row = concatenated([rows.pop(), row])
            rows.append(row)
        rows[-1] = replace(rows[-1], is_final=self.is_final)
        return rows

    def _row(self, before: list["Segment"], frame: Pieces) -> "Segment":
        """One event behind those in the rows."""
        position = self.first_position
        sequence = next_sequence = self.first_sequence
        if before:
            position = before[-1].last_position + 1
            sequence = next_sequence = before[-1].next_sequence
        if not frame[0].startswith(INTERNAL_FRAME_PREFIX):
            next_sequence += 1
        return replace(
            self,
            first_position=position,
            last_position=position,
            first_sequence=sequence,
            next_sequence=next_sequence,
            pieces=frame,
            is_final=False,
            commit_marks=commit_mark(position, round(self.committed_at * 1000)),
        )


class Numbering:
    """Assigns positions and sequence numbers to the events of one attempt."""

    def __init__(self, response_id: str, attempt: int) -> None:
        self.response_id = response_id
        self.attempt = attempt
        self.next_position = 0
        self.next_sequence = 0
        self._encoder = FrameEncoder()

    def follow(self, last: Segment) -> None:
        self.next_position = last.last_position + 1
        self.next_sequence = last.next_sequence

    def seal(self, events: Sequence[Event]) -> Segment:
        """The events as a segment, with the next numbers."""
        first_position = self.next_position
        first_sequence = self.next_sequence
        pieces: list[bytes] = []
        for event in events:
            if event["type"].startswith(INTERNAL_PREFIX):
                pieces += self._encoder.pieces(event, None)
            else:
                pieces += self._encoder.pieces(event, self.next_sequence)
                self.next_sequence += 1
        self.next_position += len(events)
        last_position = self.next_position - 1
        return Segment(
            response_id=self.response_id,
            attempt=self.attempt,
            first_position=first_position,
            last_position=last_position,
            first_sequence=first_sequence,
            next_sequence=self.next_sequence,
            pieces=gathered(pieces),
            is_final=events[-1]["type"] in TERMINAL_TYPES,
            commit_marks=commit_mark(last_position, int(time.time() * 1000)),
        )

    def seal_text(self, frames: TextFrames, texts: Sequence[str]) -> Segment:
        """The deltas of a text as a segment, with the next numbers; its commit marks it."""
        first_position = self.next_position
        first_sequence = self.next_sequence
        encoded: list[bytes] = []
        for sequence, text in enumerate(texts, first_sequence):
            encoded.append(frames.encode(text, sequence))
        self.next_position += len(encoded)
        self.next_sequence += len(encoded)
        return Segment(
            self.response_id,
            self.attempt,
            first_position,
            self.next_position - 1,
            first_sequence,
            self.next_sequence,
            (b"".join(encoded),),
        )


def commit_mark(last_position: int, at_ms: int) -> str:
    return f"{last_position}:{at_ms}"


def stamped(segment: Segment) -> Segment:
    """The segment with now as its commit time, for readers in this process and in others alike."""
    # ``replace`` would look up each field by its name, for each word of a stream.
    return Segment(
        segment.response_id,
        segment.attempt,
        segment.first_position,
        segment.last_position,
        segment.first_sequence,
        segment.next_sequence,
        segment.pieces,
        segment.is_final,
        commit_mark(segment.last_position, int(time.time() * 1000)),
    )


def concatenated(group: Sequence[Segment]) -> Segment:
    """Neighbouring segments as one."""
    last = group[-1]
    marks = [segment.commit_marks for segment in group if segment.commit_marks]
    pieces: list[bytes] = []
    for segment in group:
        pieces += segment.pieces
    return replace(
        group[0],
        last_position=last.last_position,
        next_sequence=last.next_sequence,
        is_final=last.is_final,
        pieces=gathered(pieces),
        commit_marks=",".join(marks),
    )


def up_to_end(segments: Sequence[Segment]) -> list[Segment]:
    """Without events after the terminal one, which earlier versions stored; readers stop there."""
    for number, segment in enumerate(segments, 1):
        if segment.is_final:
            return list(segments[:number])
    return list(segments)


def first_output_at(segments: Iterable[Segment]) -> datetime | None:
    """When the first output item was committed, if one was."""
    for segment in segments:
        for _, written_at, frame in segment.timed_frames():
            if frame.startswith(OUTPUT_ADDED_PREFIX):
                return datetime.fromtimestamp(written_at, UTC)
    return None
