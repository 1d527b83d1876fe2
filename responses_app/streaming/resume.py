"""``GET /v1/responses/{id}?stream=true``: the same log, from wherever the client was cut."""

from urllib.parse import parse_qs

from responses_app.database import database
from responses_app.eventlog.store import event_store
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_last_event_id,
)
from responses_app.services.lookup import find_log, note_access
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.pump import pump
from responses_app.streaming.renderers import NumberedResponsesView, ResponsesView


class ResumeResponseConsumer(HttpConsumer):
    async def answer(self, body: bytes) -> None:
        principal = await self.principal()
        response_id = self.path_args["response_id"]
        cursor = self._cursor()
        row = await database.read(find_log, principal.owner_id, response_id)
        tail = event_store.tails.of(
            response_id
        )  # held, so that nothing is published past this reader
        position = -1 if cursor is None else await event_store.position_after(response_id, cursor)
        note_access(row)
        await self.start_stream([(SESSION_HEADER.lower().encode(), row.session.public_id.encode())])
        is_browser = "text/event-stream" in (self.header("accept") or "")
        await pump(
            self, response_id, position, NumberedResponsesView() if is_browser else ResponsesView()
        )
        del tail

    def _cursor(self) -> int | None:
        query = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        in_header = read_last_event_id(self.header(LAST_EVENT_HEADER))
        in_query = read_cursor(query.get("starting_after", [None])[-1], "starting_after")
        return in_header if in_query is None else in_query
