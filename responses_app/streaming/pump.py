"""The pump: from the log to the connection of one reader."""

import time

from responses_app.eventlog import LogErased, Segment
from responses_app.eventlog.store import event_store
from responses_app.metrics import events_delivered, streams_open
from responses_app.protocol.errors import ResponseInterrupted
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.renderers import LogView

INTERRUPTED_FRAME = (
    b": the server is shutting down, and this goes on when it is back: "
    b"resume after the last event\n\n"
)
COUNTED_EVENTS = 50  # at a time: the counter costs more than the sum, and streams send single words
HEARTBEAT_SECS = 10  # clients and proxies commonly give up on a silent body at 20 s
TAKEN_BYTES = 16 * 1024  # of a segment that is sent at once: a longer one waits for room


async def pump(consumer: HttpConsumer, response_id: str, position: int, view: LogView) -> None:
    """Send the events after a position, then live ones, until the terminal event."""
    with streams_open.track_inprogress():
        current = _Pump(consumer, view)
        try:
            await current.run(response_id, position)
        except LogErased:
            await consumer.cut()
        except ResponseInterrupted:
            # Without an end: the server cuts a response that does not end.
            await consumer.send_chunk(INTERRUPTED_FRAME)
        finally:
            current.count()


class _Pump:
    def __init__(self, consumer: HttpConsumer, view: LogView) -> None:
        self._consumer = consumer
        self._view = view
        self._sent_at = time.monotonic()
        self._uncounted = 0  # events that were delivered

    async def run(self, response_id: str, position: int) -> None:
        log = event_store.read_after(response_id, position, HEARTBEAT_SECS, takes=self.take)
        async for segments in log:
            chunks = self._view.chunks(segments)
            for chunk in chunks:
                await self._consumer.send_chunk(chunk)
            if chunks:
                self._note_sent(segments[0].first_position, segments[-1].last_position)
            elif not segments or self._needs_heartbeat():
                await self._consumer.send_chunk(self._view.heartbeat)
                self._sent_at = time.monotonic()
            del segments, chunks  # they may be long: gone before the next ones are read
        await self._consumer.send_chunk(self._view.done, is_last=True)

    def take(self, segment: Segment) -> bool:
        """Send a new segment without waking the task that runs this, where there is room for it."""
        if not self._consumer.sends_at_once or segment.size > TAKEN_BYTES:
            return False
        chunks = self._view.chunks((segment,))
        for chunk in chunks:
            self._consumer.send_at_once(chunk)
        if chunks:
            self._note_sent(segment.first_position, segment.last_position)
        elif self._needs_heartbeat():
            self._consumer.send_at_once(self._view.heartbeat)
            self._sent_at = time.monotonic()
        return True

    def _needs_heartbeat(self) -> bool:
        """A log may be busy with events that this view leaves out."""
        return time.monotonic() - self._sent_at >= HEARTBEAT_SECS

    def _note_sent(self, first_position: int, last_position: int) -> None:
        self._sent_at = time.monotonic()
        self._uncounted += last_position - first_position + 1
        if self._uncounted >= COUNTED_EVENTS:
            self.count()

    def count(self) -> None:
        events_delivered.inc(self._uncounted)
        self._uncounted = 0
