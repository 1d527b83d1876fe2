"""Stream events and their bytes on the wire.

A public event has a type of OpenAI's and a ``sequence_number``; an internal one has a
``hermes.`` type and a log position only, and never reaches an OpenAI stream.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

Event = dict[str, Any]

INTERNAL_PREFIX = "hermes."
INTERNAL_FRAME_PREFIX = b"event: hermes."
FRAME_END = b"\n\n"
DONE_FRAME = b"data: [DONE]\n\n"
HEARTBEAT_FRAME = b": keepalive\n\n"

CREATED = "response.created"
QUEUED = "response.queued"
IN_PROGRESS = "response.in_progress"
COMPLETED = "response.completed"
FAILED = "response.failed"
INCOMPLETE = "response.incomplete"
TOOL_CALLED = "hermes.tool.called"  # a call of a server's tool is whole: from here on it may run
TOOL_STARTED = "hermes.tool.started"
TOOL_FINISHED = "hermes.tool.finished"
APPROVAL_REQUESTED = "hermes.approval.requested"
APPROVAL_RESOLVED = "hermes.approval.resolved"
TERMINAL_TYPES = frozenset({COMPLETED, FAILED, INCOMPLETE})
LIFECYCLE_TYPES = TERMINAL_TYPES | {CREATED, QUEUED, IN_PROGRESS}

_SURROGATES_OR_NUL = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def is_internal(event: Event) -> bool:
    return str(event["type"]).startswith(INTERNAL_PREFIX)


def encode_frame(event: Event, sequence: int | None) -> bytes:
    """The event as one SSE frame: compact JSON has no raw newline, so a blank line ends it."""
    kind = event["type"]
    if sequence is not None:
        event = {"type": kind, "sequence_number": sequence, **event}
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(event))


def split_frames(data: bytes) -> list[bytes]:
    frames = data.split(FRAME_END)
    frames.pop()  # behind the last blank line there is nothing
    return [frame + FRAME_END for frame in frames]


def frame_data(frame: bytes) -> bytes:
    """The JSON inside a frame."""
    return frame[frame.index(b"\ndata: ") + 7 : -len(FRAME_END)]


def decode_frame(frame: bytes) -> Event:
    event: Event = orjson.loads(frame_data(frame))
    return event


def decode_frames(chunks: Iterable[bytes]) -> Iterator[Event]:
    for chunk in chunks:
        for frame in split_frames(chunk):
            yield decode_frame(frame)


def clean_text(text: str) -> str:
    """Text that every database and every JSON encoder takes.

    Models and tools emit NUL and lone surrogates; PostgreSQL and UTF-8 refuse them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_SURROGATES_OR_NUL)
    return text.replace("\0", "\ufffd") if "\0" in text else text
