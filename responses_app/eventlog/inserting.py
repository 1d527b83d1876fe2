"""Inserting: the SQL that stores segments of open responses, fenced by the attempt."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from responses_app.eventlog.row_tables import MAX_ROWS, fetch_all, table_sql
from responses_app.eventlog.segments import Segment
from responses_app.metrics import events_appended
from responses_app.models import EventSegment, Response
from responses_app.models.segments import FORMAT_VERSION, Codec
from responses_app.models.statements import run_statement, thread_database
from responses_app.protocol.frame_pieces import LONG_BYTES
from responses_app.protocol.status import OPEN

COLUMNS = (
    "response_id, attempt, first_position, last_position, first_sequence, next_sequence, "
    "is_final, format_version, codec, commit_marks, frames"
)
ROW = "(" + ", ".join(["%s"] * 11) + ")"
STATEMENT_BYTES = 512 * 1024  # of events, unless a single one is longer
_OPEN = ", ".join([f"'{status}'" for status in OPEN])
TYPES = ("text", "int4", "int4", "int4", "int4", "int4", "bool", "int2", "int2", "text", "bytea")


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
    database = thread_database()
    if database.features.has_select_for_update:
        lock = "FOR SHARE OF r"
        if skip_locked:
            lock = "FOR SHARE OF r SKIP LOCKED"
    stored: set[tuple[str, int]] = set()
    for rows in _statements(segments):
        stored |= _insert(rows, lock)
    event_count = 0
    for segment in segments:
        if (segment.response_id, segment.first_position) in stored:
            event_count += segment.last_position - segment.first_position + 1
    database.on_commit(partial(events_appended.inc, event_count))
    return stored


def _statements(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """The rows of each statement; the database copies what it is given several times."""
    chunk: list[Segment] = []
    size = 0
    for segment in segments:
        for row in segment.rows():
            if chunk and (len(chunk) == MAX_ROWS or size + row.size > STATEMENT_BYTES):
                yield chunk
                chunk = []
                size = 0
            chunk.append(row)
            size += row.size
    if chunk:
        yield chunk


def _insert(rows: list[Segment], lock: str) -> set[tuple[str, int]]:
    if len(rows) == 1 and thread_database().vendor == "sqlite":
        return _insert_one(rows[0])
    values = [row_values(row, Codec.PLAIN, row.data) for row in rows]
    return set(fetch_all(_insert_statement(len(values), lock), values))


def _insert_one(row: Segment) -> set[tuple[str, int]]:
    """Without a table of rows and without RETURNING, for which SQLite copies the row."""
    values = row_values(row, Codec.PLAIN, row.data)
    database = thread_database()
    fence = (row.response_id, row.attempt)
    _, stored = run_statement(database, _one_row_statement(), [*values, *fence])
    if row.size >= LONG_BYTES:
        # The connection keeps the statement with its values: these match no response.
        run_statement(database, _one_row_statement(), ["", *values[1:-1], b"", "", 0])
    if not stored:
        return set()
    return {(row.response_id, row.first_position)}


def is_stored(segment: Segment) -> bool:
    """Whether exactly these events are stored, by this attempt."""
    return all(_is_stored(row) for row in segment.rows())


def _is_stored(segment: Segment) -> bool:
    rows = EventSegment.objects.filter(
        response_id=segment.response_id, first_position=segment.first_position
    )
    return any(row.attempt == segment.attempt and bytes(row.frames) == segment.data for row in rows)


@lru_cache
def _one_row_statement() -> str:
    values = ROW.strip("()")
    return (
        f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) SELECT {values} "
        f"FROM {Response._meta.db_table} WHERE id = %s AND attempt = %s "
        f"AND status IN ({_OPEN})"
    )


@lru_cache(maxsize=64)
def _insert_statement(rows: int, lock: str) -> str:
    columns = ", ".join([f"b.{column}" for column in COLUMNS.split(", ")])
    return (
        f"WITH b({COLUMNS}) AS ({table_sql(TYPES, rows)}) "
        f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) SELECT {columns} FROM b "
        f"JOIN {Response._meta.db_table} r ON r.id = b.response_id "
        f"AND r.attempt = b.attempt AND r.status IN ({_OPEN}) {lock} "
        "RETURNING response_id, first_position"
    )
