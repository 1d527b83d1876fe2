"""``POST /v1/runs`` starts a run; ``GET /v1/runs/{run_id}/events`` streams its events."""

from gateway_app.api.runs.payloads import find_run
from gateway_app.api.runs.renderers import RunEventsView
from gateway_app.api.runs.requests import read_run
from responses_app.database import database
from responses_app.eventlog import read_last
from responses_app.protocol.errors import CursorAhead
from responses_app.protocol.ids import run_id_of
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_last_event_id,
)
from responses_app.requests.json_body import parse_body
from responses_app.services.lookup import note_access
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump

CURSORS = ("after", "last_seq")  # the second is Hermes' name


class CreateRunConsumer(GeneratingConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        session_id = self.session_id
        fields = await parse_body(body)
        options = self.client_options
        admission = await self.read_request(read_run, fields, principal, session_id, options)
        admitted = await self.admit(admission, fields)
        started = {
            "run_id": run_id_of(admitted.response_id),
            "status": "started",
            "replayed": admitted.is_replayed,
            "response_id": admitted.response_id,
            "session_id": admitted.session_id,
        }
        headers = self.admitted_headers(admitted, admission.ignored)
        await self.send_json(started, status=202, headers=headers)


class RunEventsConsumer(HttpConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        row = await database.read(find_run, principal.owner_id, self.path_args["run_id"])
        cursor = await self._cursor(row.pk)
        note_access(row)
        await self.start_stream([(SESSION_HEADER.lower().encode(), row.session.public_id.encode())])
        await pump(self, row.pk, position=-1, view=RunEventsView(row.pk, cursor))

    async def _cursor(self, response_id: str) -> int:
        """The query counts before the header, as for responses; of two in the query, the newer one."""
        in_header = read_last_event_id(self.header(LAST_EVENT_HEADER))
        name = LAST_EVENT_HEADER
        cursor: int | None = None
        for param in CURSORS:
            in_query = read_cursor(self.query_param(param), param)
            if in_query is not None and (cursor is None or in_query > cursor):
                name = param
                cursor = in_query
        if cursor is None:
            cursor = in_header
        if cursor is None:
            return -1
        last_segment = await database.read(read_last, response_id)
        last = -1 if last_segment is None else last_segment.last_position
        if cursor > last:
            raise CursorAhead(cursor, last, name)
        return cursor
