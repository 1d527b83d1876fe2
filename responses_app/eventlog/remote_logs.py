"""Remote logs: those that are read here and written by other processes.

What a hint carries extends them at once; one query reads all others that grew.
"""

import asyncio
import contextvars
import logging
from collections.abc import Mapping, Sequence

from django.db import connection

from responses_app.database import Database
from responses_app.eventlog.row_tables import MAX_ROWS, fetch_all, table_sql
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.stored_rows import COLUMNS, segment_of_row
from responses_app.eventlog.tails import Tail, Tails
from responses_app.models import EventSegment
from responses_app.protocol.errors import StorageUnavailable

logger = logging.getLogger(__name__)

PAUSE_SECS = 0.003  # after a query: what other processes store meanwhile takes one query, too
FOLLOWED_EVENTS = 2_000  # a tail that is further behind is read by its readers, page by page
# The readers of a log that has ended stop at the terminal event: its status need not be joined.
_COLUMNS = ", ".join([f"s.{name}" for name in COLUMNS if "__" not in name])


class RemoteLogs:
    """Extends the tails of this process; what grows during a query, or just after it, waits for the next."""

    def __init__(self, database: Database, tails: Tails) -> None:
        self._database = database
        self._tails = tails
        self._grown: dict[str, tuple[Tail, int]] = {}
        self._reading: asyncio.Task[None] | None = None

    def has_reader_behind(self, stored: Mapping[str, int]) -> bool:
        """Whether a reader of this process waits for any of these logs, up to these positions."""
        for response_id, position in stored.items():
            tail = self._tails.find(response_id)
            if tail is not None and _is_behind(tail, position):
                return True
        return False

    def note(self, stored: Mapping[str, int], carried: Sequence[Segment] = ()) -> None:
        """Other processes have stored these logs up to these positions, and these segments of them."""
        for segment in carried:
            tail = self._tails.find(segment.response_id)
            if tail is not None and _is_behind(tail, segment.last_position):
                tail.take_over([segment])
        for response_id, position in stored.items():
            tail = self._tails.find(response_id)
            if tail is not None and _is_behind(tail, position):
                self._grown[response_id] = (tail, position)
        if self._grown and self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_task(self._read(), context=contextvars.Context())

    async def _read(self) -> None:
        try:
            while self._grown:
                grown = self._grown
                self._grown = {}
                await self._extend(grown)
                await asyncio.sleep(PAUSE_SECS)
        except StorageUnavailable as error:
            self._database.unavailable_log.error(error)
        except Exception:  # the poll finds what was not read
            logger.exception("The logs of other processes could not be read.")
        finally:
            self._reading = None

    async def _extend(self, grown: dict[str, tuple[Tail, int]]) -> None:
        wanted: dict[str, int] = {}
        for response_id, (tail, position) in grown.items():
            known = tail.known_position
            if known >= 0 and 0 < position - known <= FOLLOWED_EVENTS:
                wanted[response_id] = known
        found: dict[str, list[Segment]] = {}
        if wanted:
            found = await self._database.read(read_grown, wanted)
        for response_id, (tail, position) in grown.items():
            if not tail.is_written_here:
                tail.take_over(found.get(response_id, ()))
            tail.note_stored(position)  # what is still missing is read by its readers


def _is_behind(tail: Tail, position: int) -> bool:
    return tail.readers > 0 and not tail.is_written_here and position > tail.newest_position


def read_grown(positions: Mapping[str, int]) -> dict[str, list[Segment]]:
    """The segments of each log after its position; a merged log, which begins before it, has none."""
    found: dict[str, list[Segment]] = {}
    wanted = list(positions.items())
    for start in range(0, len(wanted), MAX_ROWS):
        chunk = wanted[start : start + MAX_ROWS]
        for row in fetch_all(_statement(len(chunk)), chunk):
            segment = segment_of_row(row)
            found.setdefault(segment.response_id, []).append(segment)
    return found


def _statement(rows: int) -> str:
    wanted = table_sql(("text", "int4"), rows)
    table = EventSegment._meta.db_table
    if connection.vendor == "postgresql":
        # The limit keeps the planner from reading the whole table, which it takes for cheap.
        return (
            f"SELECT s.* FROM ({wanted}) w CROSS JOIN LATERAL ("
            f"SELECT {_COLUMNS} FROM {table} s WHERE s.response_id = w.column1 "
            f"AND s.first_position > w.column2 ORDER BY s.first_position LIMIT {FOLLOWED_EVENTS}"
            ") s ORDER BY s.response_id, s.first_position"
        )
    return (
        f"SELECT {_COLUMNS} FROM ({wanted}) w JOIN {table} s "
        "ON s.response_id = w.column1 AND s.first_position > w.column2 "
        "ORDER BY s.response_id, s.first_position"
    )
