"""The pump: from the log to one reader's connection."""

from collections.abc import Sequence

from responses_app.eventlog import LogErased, Segment, event_store
from responses_app.events import DONE_FRAME, HEARTBEAT_FRAME
from responses_app.streaming.http import HttpConsumer

HEARTBEAT_SECS = 10  # clients and proxies commonly give up on a silent body at 20 s


async def pump(consumer: HttpConsumer, response_id: str, position: int, *, with_ids: bool = False) -> None:
    """Send everything behind a position, then live events, until the terminal one."""
    try:
        async for segments in event_store.read_after(response_id, position, HEARTBEAT_SECS):
            chunk = _with_ids(segments) if with_ids else _public_bytes(segments)
            if chunk or not segments:
                await consumer.send_chunk(chunk or HEARTBEAT_FRAME)
        await consumer.send_chunk(DONE_FRAME, is_last=True)
    except LogErased:
        await consumer.send_chunk(b"", is_last=True)


def _public_bytes(segments: Sequence[Segment]) -> bytes:
    return b"".join(segment.data if segment.is_public else b"".join(segment.public_frames()) for segment in segments)


def _with_ids(segments: Sequence[Segment]) -> bytes:
    """``id:`` lines, which a browser's EventSource sends back as Last-Event-ID."""
    return b"".join(
        b"id: %d\n%s" % (sequence, frame)
        for segment in segments
        for sequence, frame in enumerate(segment.public_frames(), segment.first_sequence)
    )
