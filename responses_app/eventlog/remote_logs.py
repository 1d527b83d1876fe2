"""Remote logs: those that are read here and written by other processes, one query for all that grew."""

import asyncio
import contextvars
import logging
from collections.abc import Mapping

from django.db import connection

from responses_app.database import Database
from responses_app.eventlog.hints import SharedTail
from responses_app.eventlog.reading import COLUMNS, segment_of_row
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.tails import Tail, Tails
from responses_app.models import EventSegment
from responses_app.protocol.errors import StorageUnavailable

logger = logging.getLogger(__name__)

IDS_PER_QUERY = 500  # keeps a statement far below SQLite's limit of parameters
FOLLOWED_EVENTS = 2_000  # a tail that is further behind is read by its readers, page by page
# The readers of a log that has ended stop at the terminal event: its status need not be joined.
_COLUMNS = ", ".join([f"s.{name}" for name in COLUMNS if "__" not in name])


class RemoteLogs:
    """Extends the tails of this process; while one query runs, what grows waits for the next."""

    def __init__(self, database: Database, tails: Tails) -> None:
        self._database = database
        self._tails = tails
        self._grown: dict[str, tuple[SharedTail, int]] = {}
        self._reading: asyncio.Task[None] | None = None

    def note(self, stored: Mapping[str, int]) -> None:
        """Other processes have stored these logs up to these positions."""
        for response_id, position in stored.items():
            tail = self._tails.find(response_id)
            if isinstance(tail, SharedTail) and _is_behind(tail, position):
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
        except StorageUnavailable as error:
            self._database.unavailable_log.error(error)
        except Exception:  # the poll finds what was not read
            logger.exception("The logs of other processes could not be read.")
        finally:
            self._reading = None

    async def _extend(self, grown: dict[str, tuple[SharedTail, int]]) -> None:
        wanted: dict[str, int] = {}
        for response_id, (tail, position) in grown.items():
            known = _known_position(tail)
            if known >= 0 and position - known <= FOLLOWED_EVENTS:
                wanted[response_id] = known
        found: dict[str, list[Segment]] = {}
        if wanted:
            found = await self._database.read(read_grown, wanted)
        for response_id, (tail, position) in grown.items():
            segments = found.get(response_id)
            is_next = segments and segments[0].first_position == _known_position(tail) + 1
            if segments and is_next and not tail.is_written_here:
                tail.take_over(segments)
            else:
                tail.note_stored(position)  # its readers query the database


def _is_behind(tail: Tail, position: int) -> bool:
    return tail.readers > 0 and not tail.is_written_here and position > tail.newest_position


def _known_position(tail: Tail) -> int:
    """Up to here the tail has the log, or its readers have read it."""
    newest = tail.newest
    if newest is not None:
        return newest.last_position
    return tail.newest_position


def read_grown(positions: Mapping[str, int]) -> dict[str, list[Segment]]:
    """The segments of each log after its position; a merged log, which begins before it, has none."""
    found: dict[str, list[Segment]] = {}
    wanted = list(positions.items())
    for start in range(0, len(wanted), IDS_PER_QUERY):
        chunk = wanted[start : start + IDS_PER_QUERY]
        values: list[str | int] = []
        for pair in chunk:
            values.extend(pair)
        with connection.cursor() as cursor:
            cursor.execute(_statement(len(chunk)), values)
            rows = cursor.fetchall()
        for row in rows:
            segment = segment_of_row(row)
            found.setdefault(segment.response_id, []).append(segment)
    return found


def _statement(rows: int) -> str:
    wanted = ", ".join(["(%s, %s)"] * rows)
    return (
        f"SELECT {_COLUMNS} FROM (VALUES {wanted}) w JOIN {EventSegment._meta.db_table} s "
        "ON s.response_id = w.column1 AND s.first_position > w.column2 "
        "ORDER BY s.response_id, s.first_position"
    )
