"""Inserting: the SQL that stores segments of open responses, fenced by the attempt."""

from collections.abc import Sequence
from functools import lru_cache, partial

from django.db import connection, transaction

from responses_app.eventlog.segments import Segment
from responses_app.metrics import events_appended
from responses_app.models import EventSegment, Response
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.protocol.status import OPEN

INSERT_ROWS = 500  # keeps a statement far below SQLite's limit of 32,766 parameters

COLUMNS = (
    "response_id, attempt, first_position, last_position, first_sequence, next_sequence, "
    "is_final, format_version, codec, commit_marks, frames"
)
ROW = "(" + ", ".join(["%s"] * 11) + ")"


def row_values(segment: Segment, codec: Codec, data: bytes) -> tuple[int | str | bytes, ...]:
    return (
        segment.response_id,
        segment.attempt,
        segment.first_position,
        segment.last_position,
        segment.first_sequence,
        segment.next_sequence,
        segment.is_final,
        FORMAT_VERSION,
        int(codec),
        segment.commit_marks,
        data,
    )


def insert_fenced(
    segments: Sequence[Segment], *, skip_locked: bool = False
) -> set[tuple[str, int]]:
    """Store the segments of open responses whose attempt is the newest.

    Returns the response id and first position of each stored segment. What is not returned was
    refused: the response has ended, or a newer attempt has it. With ``skip_locked`` its row may
    also be locked by another session. On PostgreSQL the rows stay locked until the commit, so that
    the next attempt can't start counting before it sees these segments. SQLite has one writer at a
    time.
    """
    lock = ""
    if connection.features.has_select_for_update:
        lock = "FOR SHARE OF r"
        if skip_locked:
            lock = "FOR SHARE OF r SKIP LOCKED"
    stored: set[tuple[str, int]] = set()
    with connection.cursor() as cursor:
        for start in range(0, len(segments), INSERT_ROWS):
            chunk = segments[start : start + INSERT_ROWS]
            values: list[int | str | bytes] = []
            for segment in chunk:
                values.extend(row_values(segment, Codec.PLAIN, segment.data))
            cursor.execute(_insert_statement(len(chunk), lock), values)
            stored.update(cursor.fetchall())
    event_count = 0
    for segment in segments:
        if (segment.response_id, segment.first_position) in stored:
            event_count += segment.last_position - segment.first_position + 1
    transaction.on_commit(partial(events_appended.inc, event_count))
    return stored


def is_stored(segment: Segment) -> bool:
    """Whether exactly these events are stored, by this attempt."""
    rows = EventSegment.objects.filter(
        response_id=segment.response_id, first_position=segment.first_position
    )
    return any(row.attempt == segment.attempt and bytes(row.frames) == segment.data for row in rows)


@lru_cache(maxsize=64)
def _insert_statement(rows: int, lock: str) -> str:
    columns = ", ".join([f"b.{column}" for column in COLUMNS.split(", ")])
    statuses = ", ".join([f"'{status}'" for status in OPEN])
    return (
        f"WITH b({COLUMNS}) AS (VALUES {', '.join([ROW] * rows)}) "
        f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) SELECT {columns} FROM b "
        f"JOIN {Response._meta.db_table} r ON r.id = b.response_id "
        f"AND r.attempt = b.attempt AND r.status IN ({statuses}) {lock} "
        "RETURNING response_id, first_position"
    )
