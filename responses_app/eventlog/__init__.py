"""The event log: the only writer of events, and the one way to read them."""

from responses_app.eventlog.jobs import Fenced
from responses_app.eventlog.segments import LogErased, Numbering, Segment
from responses_app.eventlog.snapshots import current_body, final_body
from responses_app.eventlog.store import EventStore, final_bodies
from responses_app.eventlog.tails import Tail

event_store = EventStore()

__all__ = [
    "EventStore",
    "Fenced",
    "LogErased",
    "Numbering",
    "Segment",
    "Tail",
    "current_body",
    "event_store",
    "final_bodies",
    "final_body",
]
