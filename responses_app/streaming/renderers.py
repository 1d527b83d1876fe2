"""What a reader makes of the log. Every door reads the same events and says them in its own words."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from responses_app.eventlog import Segment
from responses_app.protocol.events import Event
from responses_app.protocol.sse import DONE_FRAME, HEARTBEAT_FRAME, decode_frame, frame_data


class LogView(ABC):
    """A pure function of the log from its first event; a cursor only discards what it says."""

    heartbeat: bytes = HEARTBEAT_FRAME
    done: bytes = DONE_FRAME  # behind the last event

    @abstractmethod
    def render(self, segments: Sequence[Segment]) -> bytes:
        """The bytes for the next events of the log, internal ones included; none when they say nothing here."""


class TimedView(LogView):
    """For views that translate: each event with its position and a time that never goes back."""

    def __init__(self) -> None:
        self._last_at = 0.0

    def events(self, segments: Sequence[Segment]) -> Iterator[tuple[int, float, Event]]:
        for segment in segments:
            for position, at, frame in segment.timed_frames():
                # The end of a response is numbered a moment before what goes in front of it is committed.
                self._last_at = max(self._last_at, at)
                yield position, self._last_at, decode_frame(frame)


class ResponsesView(LogView):
    """The log is stored in this form: it can begin anywhere."""

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(
            segment.data if segment.is_public else b"".join(segment.public_frames())
            for segment in segments
        )


class NumberedResponsesView(LogView):
    """With ``id:`` lines, which a browser's EventSource sends back as Last-Event-ID."""

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(
            b"id: %d\n%s" % (sequence, frame)
            for segment in segments
            for sequence, frame in enumerate(segment.public_frames(), segment.first_sequence)
        )


class TimedLogView(LogView):
    """Every event, internal ones too, with its commit time; the ``id:`` is its position. For operators."""

    done = b"event: end\ndata: {}\n\n"

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(
            b'id: %d\ndata: {"at":%d,"event":%s}\n\n'
            % (position, round(at * 1000), frame_data(frame))
            for segment in segments
            for position, at, frame in segment.timed_frames()
        )
