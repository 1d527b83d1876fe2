"""The older events of a response that is not stored, compressed.

A slow model makes a segment of each word: as objects they take fifty times the text. Packed in
blocks they take little more than the text itself.
"""

import zlib
from bisect import bisect_left
from dataclasses import dataclass, replace
from operator import attrgetter

from responses_app.eventlog.segments import Segment, concatenated
from responses_app.protocol.frame_pieces import compressed

MARKS_END = b"\n"  # commit marks have no newline


@dataclass(frozen=True, slots=True)
class _Block:
    outline: Segment  # without its events and commit marks
    packed: bytes

    def unpacked(self) -> Segment:
        marks, _, data = zlib.decompress(self.packed).partition(MARKS_END)
        return replace(self.outline, pieces=(data,), commit_marks=marks.decode())


class PackedLog:
    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def add(self, segments: list[Segment]) -> None:
        """Add the next segments of the log as one block."""
        whole = concatenated(segments)
        packed = compressed((whole.commit_marks.encode(), MARKS_END, *whole.pieces))
        self._blocks.append(_Block(replace(whole, pieces=(), commit_marks=""), packed))

    def after(self, position: int) -> list[Segment]:
        """The events after a position up to the end of its block; later blocks stay packed."""
        number = bisect_left(self._blocks, position + 1, key=attrgetter("outline.last_position"))
        if number == len(self._blocks):
            return []
        return [self._blocks[number].unpacked().after(position)]

    def whole(self) -> list[Segment]:
        return [block.unpacked() for block in self._blocks]
