"""Events as SSE frames, on the wire and in the log."""

from collections.abc import Iterable, Iterator

import orjson

from responses_app.protocol.events import INTERNAL_PREFIX, Event

FRAME_END = b"\n\n"
DONE_FRAME = b"data: [DONE]\n\n"
HEARTBEAT_FRAME = b": keepalive\n\n"
INTERNAL_FRAME_PREFIX = b"event: " + INTERNAL_PREFIX.encode()
_DATA = b"\ndata: "


def encode_frame(event: Event, sequence: int | None) -> bytes:
    """The event as one SSE frame: compact JSON has no raw newline, so a blank line ends it."""
    kind = event["type"]
    if sequence is not None:
        event = {"type": kind, "sequence_number": sequence, **event}
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(event))


def split_frames(data: bytes) -> list[bytes]:
    frames = data.split(FRAME_END)
    frames.pop()  # the empty rest after the last blank line
    return [frame + FRAME_END for frame in frames]


def frame_data(frame: bytes) -> bytes:
    """The JSON inside a frame."""
    start = frame.index(_DATA) + len(_DATA)
    return frame[start : -len(FRAME_END)]


def decode_frame(frame: bytes) -> Event:
    event: Event = orjson.loads(frame_data(frame))
    return event


def decode_last_frame(data: bytes) -> Event:
    """The last event of some frames, which may be long: nothing is copied."""
    end = len(data) - len(FRAME_END)
    start = data.rfind(FRAME_END, 0, end)
    start = data.index(_DATA, max(start, 0)) + len(_DATA)
    event: Event = orjson.loads(memoryview(data)[start:end])
    return event


def decode_frames(chunks: Iterable[bytes]) -> Iterator[Event]:
    for chunk in chunks:
        for frame in split_frames(chunk):
            yield decode_frame(frame)
