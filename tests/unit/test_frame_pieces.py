"""Frames in pieces: the bytes of the whole frames, and each long text once in memory."""

import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.eventlog.segments import Numbering, Segment, concatenated, stamped
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.frame_pieces import LONG_BYTES, FrameEncoder, compressed, framed, gathered
from responses_app.protocol.sse import INTERNAL_FRAME_PREFIX, decode_last_frame, encode_frame, split_frames
from responses_app.protocol.status import Status
from responses_app.streaming.renderers import ResponsesView
from tests.support.output_builders import RESPONSE_ID, created_event

CLEAN = st.characters(exclude_categories=["Cs"])
PIECES = st.lists(st.one_of(st.text(CLEAN, max_size=9), st.integers(0, 99), st.none(), st.just("LONG")), max_size=6)


def long_text(seed: str) -> str:
    return (seed or "x") * (LONG_BYTES // len(seed or "x"))


def long_answer(*, is_estimated: bool = False) -> list[Event]:
    """The end of a turn whose item is still open, as a cancelled one leaves it."""
    builder = OutputBuilder(RESPONSE_ID, [created_event()])
    builder.text("first ")
    builder.text(long_text('a "word"\n\u2028é '))
    builder.take()
    if is_estimated:
        builder.add({"type": "hermes.usage.estimated"})
    builder.finish(Status.CANCELLED)
    return builder.take()


@settings(deadline=None, max_examples=30)
@given(PIECES, st.text(CLEAN, min_size=1, max_size=5), st.one_of(st.none(), st.integers(0, 10**9)))
def test_the_pieces_are_the_frame(values: list[Any], seed: str, sequence: int | None) -> None:
    text = long_text(seed)
    fields = [text if value == "LONG" else value for value in values]
    event: Any = {"type": "response.x", "item": {"parts": fields, "text": text}, "last": fields[:1]}
    assert b"".join(FrameEncoder().pieces(event, sequence)) == encode_frame(event, sequence)


def test_the_events_at_the_end_share_one_long_text() -> None:
    numbering = Numbering(RESPONSE_ID, 1)
    segment = numbering.seal(long_answer())
    long = [piece for piece in segment.pieces if len(piece) >= LONG_BYTES]
    assert len(long) == 4
    assert len({id(piece) for piece in long}) == 1
    assert segment.is_whole
    assert decode_last_frame(segment.data)["type"] == "response.incomplete"


@pytest.mark.parametrize("is_estimated", [False, True])
def test_a_reader_gets_the_public_events_in_pieces_that_are_no_copies(*, is_estimated: bool) -> None:
    segment = Numbering(RESPONSE_ID, 1).seal(long_answer(is_estimated=is_estimated))
    chunks = ResponsesView().chunks([segment])
    public = [frame for frame in split_frames(segment.data) if not frame.startswith(INTERNAL_FRAME_PREFIX)]
    assert b"".join(chunks) == b"".join(public)
    assert segment.is_public is not is_estimated
    known = {id(piece) for piece in segment.pieces}
    assert all(id(chunk) in known for chunk in chunks if len(chunk) >= LONG_BYTES)


@pytest.mark.parametrize("is_estimated", [False, True])
def test_each_long_event_is_a_row_of_its_own(*, is_estimated: bool) -> None:
    numbering = Numbering(RESPONSE_ID, 1)
    first = numbering.seal([created_event()])
    events = long_answer(is_estimated=is_estimated)
    segment = stamped(concatenated([first, numbering.seal(events)]))
    rows = segment.rows()
    assert b"".join(row.data for row in rows) == segment.data
    assert [row.is_final for row in rows] == [False] * (len(rows) - 1) + [True]
    assert all(row.event_count == 1 for row in rows if row.size >= LONG_BYTES)
    assert all(row.is_whole for row in rows)
    position, sequence = segment.first_position, segment.first_sequence
    for row in rows:
        assert (row.first_position, row.first_sequence) == (position, sequence)
        position, sequence = row.last_position + 1, row.next_sequence
        assert row.committed_at == segment.committed_at
    assert (position - 1, sequence) == (segment.last_position, segment.next_sequence)


def test_an_ordinary_segment_is_one_piece_and_one_row() -> None:
    numbering = Numbering(RESPONSE_ID, 1)
    segment = numbering.seal([created_event(), {"type": "hermes.note"}])
    assert len(segment.pieces) == 1
    assert segment.rows() == [segment]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_frames_are_found_wherever_they_are_cut(bodies: list[bytes]) -> None:
    frames = [b"data: " + body.replace(b"\n", b" ") + b"\n\n" for body in bodies]
    whole = b"".join(frames)
    assert [b"".join(frame) for frame in framed([whole])] == frames
    cut: list[bytes] = []
    for frame in frames:
        cut += (frame[:3], frame[3:])
    assert [b"".join(frame) for frame in framed(cut)] == frames
    assert b"".join(gathered(cut)) == whole


def test_what_is_compressed_in_pieces_is_read_as_a_whole() -> None:
    segment: Segment = Numbering(RESPONSE_ID, 1).seal(long_answer())
    assert zlib.decompress(compressed(segment.pieces)) == segment.data
