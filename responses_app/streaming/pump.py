"""The pump: from the log to the connection of one reader."""

import time

from responses_app.eventlog import LogErased
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


async def pump(consumer: HttpConsumer, response_id: str, position: int, view: LogView) -> None:
    """Send the events after a position, then live ones, until the terminal event."""
    with streams_open.track_inprogress():
        await _pump(consumer, response_id, position, view)


async def _pump(consumer: HttpConsumer, response_id: str, position: int, view: LogView) -> None:
    clock = time.monotonic
    sent_at = clock()
    delivered = 0  # and not counted yet
    try:
        async for segments in event_store.read_after(response_id, position, HEARTBEAT_SECS):
            chunks = view.chunks(segments)
            for chunk in chunks:
                await consumer.send_chunk(chunk)
            # A log may be busy with events that this view leaves out: its reader needs a heartbeat.
            if chunks:
                sent_at = clock()
                delivered += segments[-1].last_position - segments[0].first_position + 1
                if delivered >= COUNTED_EVENTS:
                    events_delivered.inc(delivered)
                    delivered = 0
            elif not segments or clock() - sent_at >= HEARTBEAT_SECS:
                await consumer.send_chunk(view.heartbeat)
                sent_at = clock()
            del segments, chunks  # they may be long: gone before the next ones are read
        await consumer.send_chunk(view.done, is_last=True)
    except LogErased:
        await consumer.cut()
    except ResponseInterrupted:
        # Without an end: the server cuts a response that does not end.
        await consumer.send_chunk(INTERRUPTED_FRAME)
    finally:
        events_delivered.inc(delivered)
