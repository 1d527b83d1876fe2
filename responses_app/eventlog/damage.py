"""Damaged logs: how damage is noticed, and what can still be read."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress

from responses_app.eventlog.segments import Segment
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.snapshot import Snapshot
from responses_app.protocol.sse import decode_frames

# What reading raises where bytes, frames, fields or places of a log are not as they were written.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, zlib.error)


def decode_log(segments: Iterable[Segment]) -> Iterator[Event]:
    """Every event; raises one of UNREADABLE where an event is missing or broken."""
    for segment in segments:
        if not segment.is_whole:
            raise ValueError(
                f"{segment.response_id}: events are missing behind {segment.first_position}"
            )
        yield from decode_frames([segment.data])


def readable_body(segments: Iterable[Segment]) -> ResponseBody:
    """The response up to the first event that can't be read; empty where that is the first of all."""
    snapshot = Snapshot()
    with suppress(*UNREADABLE):
        for event in decode_log(segments):
            snapshot.apply(event)
    try:
        body = snapshot.body()
    except UNREADABLE:
        return {}
    return {**body, "output": [_closed(item) for item in body["output"] if "type" in item]}


def _closed(item: Item) -> Item:
    return {**item, "status": "incomplete"} if item.get("status") == "in_progress" else item
