"""Views of the log: every API reads the same events and renders them in its own form."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from responses_app.eventlog import Segment
from responses_app.protocol.events import Event
from responses_app.protocol.frame_pieces import gathered
from responses_app.protocol.sse import DONE_FRAME, HEARTBEAT_FRAME, decode_frame, frame_data


class LogView(ABC):
    """A pure function of the log from its first event; a cursor only discards output."""

    heartbeat: bytes = HEARTBEAT_FRAME
    done: bytes = DONE_FRAME  # after the last event

    @abstractmethod
    def render(self, segments: Sequence[Segment]) -> bytes:
        """The bytes for the next events, internal ones included; empty where this view has none."""

    def chunks(self, segments: Sequence[Segment]) -> Sequence[bytes]:
        """``render`` in pieces, each sent by itself; most of the time one."""
        rendered = self.render(segments)
        if not rendered:
            return ()
        return (rendered,)


class TimedView(LogView):
    """For views that translate: each event with its position, and a time that never decreases."""

    def __init__(self) -> None:
        self._last_at = 0.0

    def events(self, segments: Sequence[Segment]) -> Iterator[tuple[int, float, Event]]:
        for segment in segments:
            for position, at, frame in segment.timed_frames():
                # The terminal event gets its time before the events in front of it are committed.
                self._last_at = max(self._last_at, at)
                yield position, self._last_at, decode_frame(frame)


class ResponsesView(LogView):
    """The log is stored in this form, so that it can begin anywhere."""

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(self.chunks(segments))

    def chunks(self, segments: Sequence[Segment]) -> Sequence[bytes]:
        """Long texts as they are in the segments: no reader has a copy of its own."""
        pieces: list[bytes] = []
        for segment in segments:
            pieces += segment.public_pieces()
        return gathered(pieces)


class NumberedResponsesView(LogView):
    """With ``id:`` lines, which a browser's EventSource sends back as Last-Event-ID."""

    def render(self, segments: Sequence[Segment]) -> bytes:
        frames: list[bytes] = []
        for segment in segments:
            for sequence, frame in enumerate(segment.public_frames(), segment.first_sequence):
                frames.append(b"id: %d\n%s" % (sequence, frame))
        return b"".join(frames)


class TimedLogView(LogView):
    """For operators: every event, internal ones too, with its position and its commit time."""

    done = b"event: end\ndata: {}\n\n"

    def render(self, segments: Sequence[Segment]) -> bytes:
        frames: list[bytes] = []
        for segment in segments:
            for position, at, frame in segment.timed_frames():
                data = b'{"at":%d,"event":%s}' % (round(at * 1000), frame_data(frame))
                frames.append(b"id: %d\ndata: %s\n\n" % (position, data))
        return b"".join(frames)
