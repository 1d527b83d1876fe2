"""``GET /v1/runs/{run_id}/events``: any number of readers, each from wherever it was cut."""

from urllib.parse import parse_qs

from gateway_app.api.runs.payloads import find_run
from gateway_app.api.runs.renderers import RunEventsView
from responses_app.database import database
from responses_app.eventlog.reading import read_last
from responses_app.protocol.errors import CursorAhead
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_last_event_id,
)
from responses_app.services.lookup import note_access
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.pump import pump


class RunEventsConsumer(HttpConsumer):
    async def answer(self, body: bytes) -> None:
        principal = await self.principal()
        row = await database.read(find_run, principal.owner_id, self.path_args["run_id"])
        cursor = await self._cursor(row.pk)
        note_access(row)
        await self.start_stream([(SESSION_HEADER.lower().encode(), row.session.public_id.encode())])
        await pump(self, row.pk, position=-1, view=RunEventsView(row.pk, cursor))

    async def _cursor(self, response_id: str) -> int:
        query = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        in_header = read_last_event_id(self.header(LAST_EVENT_HEADER))
        name, cursor = "after", read_cursor(query.get("after", [None])[-1], "after")
        if cursor is None:
            name, cursor = LAST_EVENT_HEADER, in_header
        if cursor is None:
            return -1
        newest = await database.read(read_last, response_id)
        last = -1 if newest is None else newest.last_position
        if cursor > last:
            raise CursorAhead(cursor, last, name)
        return cursor
