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

# What reading a log raises when its bytes, frames, fields or positions are damaged.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, zlib.error)


def decode_log(segments: Iterable[Segment]) -> Iterator[Event]:
    """Every event; raises one of UNREADABLE where an event is missing or broken."""
    for segment in segments:
        if not segment.is_whole:
            start = segment.first_position
            raise ValueError(f"{segment.response_id}: events are missing after position {start}")
        yield from decode_frames([segment.data])


def readable_body(segments: Iterable[Segment]) -> ResponseBody:
    """The response up to the first unreadable event; empty if no event can be read."""
    snapshot = Snapshot()
    with suppress(*UNREADABLE):
        for event in decode_log(segments):
            snapshot.apply(event)
    try:
        body = snapshot.body()
    except UNREADABLE:
        return {}
    output: list[Item] = []
    for item in body["output"]:
        if not item.get("type"):
            continue
        if item.get("status") == "in_progress":
            item = item | {"status": "incomplete"}
        output.append(item)
    body["output"] = output
    return body
