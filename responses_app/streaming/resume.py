"""``GET /v1/responses/{id}?stream=true``: the same log, from where the client was cut off."""

from responses_app.database import database
from responses_app.eventlog.store import event_store
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_last_event_id,
)
from responses_app.services.lookup import find_session_of_log
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.pump import pump
from responses_app.streaming.renderers import LogView, NumberedResponsesView, ResponsesView


class ResumeResponseConsumer(HttpConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        response_id = self.path_args["response_id"]
        cursor = self._cursor()
        session = await database.read(find_session_of_log, principal.owner_id, response_id)
        # Held, so that no event is published past this reader.
        tail = event_store.tails.of(response_id)
        position = -1
        if cursor is not None:
            position = await event_store.position_after(response_id, cursor)
        event_store.note_access(response_id)
        await self.start_stream([(SESSION_HEADER.lower().encode(), session.encode())])
        view: LogView = ResponsesView()
        if "text/event-stream" in (self.header("accept") or ""):  # a browser
            view = NumberedResponsesView()
        await pump(self, response_id, position, view)
        del tail

    def _cursor(self) -> int | None:
        in_header = read_last_event_id(self.header(LAST_EVENT_HEADER))
        in_query = read_cursor(self.query_param("starting_after"), "starting_after")
        if in_query is None:
            return in_header
        return in_query
