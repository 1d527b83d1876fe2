"""The event log: the only writer of events, and the one way to read them.

``store`` is not imported here: it uses ``responses_app.database``, which runs this package's writer.
"""

from responses_app.eventlog.jobs import Fenced
from responses_app.eventlog.reading import LogErased
from responses_app.eventlog.segments import Numbering, Segment
from responses_app.eventlog.snapshots import current_body, final_bodies, final_body
from responses_app.eventlog.tails import Tail, UnstoredRequest

__all__ = [
    "Fenced",
    "LogErased",
    "Numbering",
    "Segment",
    "Tail",
    "UnstoredRequest",
    "current_body",
    "final_bodies",
    "final_body",
]
