"""The event log: the only writer of events, and the one way to read them.

``store`` is not imported here: it uses ``responses_app.database``, which runs this package's writer.
"""

from responses_app.eventlog.damage import UNREADABLE, decode_log, readable_body
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.jobs import Fenced
from responses_app.eventlog.merging import (
    merge,
    read_part,
    replace_all_with_merged,
    replace_part,
    replace_with_merged,
)
from responses_app.eventlog.reading import (
    LogErased,
    read_last,
    read_on,
    read_segments,
    read_stored,
    read_stored_logs,
    read_whole,
)
from responses_app.eventlog.segments import Numbering, Segment, first_output_at, stamped, up_to_end
from responses_app.eventlog.snapshots import current_body, final_bodies, final_body
from responses_app.eventlog.stored_rows import LogFormatNotSupported
from responses_app.eventlog.tails import AdmittedRequest, Tail

__all__ = [
    "UNREADABLE",
    "AdmittedRequest",
    "Fenced",
    "LogErased",
    "LogFormatNotSupported",
    "Numbering",
    "Segment",
    "Tail",
    "current_body",
    "decode_log",
    "final_bodies",
    "final_body",
    "first_output_at",
    "insert_fenced",
    "merge",
    "read_last",
    "read_on",
    "read_part",
    "read_segments",
    "read_stored",
    "read_stored_logs",
    "read_whole",
    "readable_body",
    "replace_all_with_merged",
    "replace_part",
    "replace_with_merged",
    "stamped",
    "up_to_end",
]
