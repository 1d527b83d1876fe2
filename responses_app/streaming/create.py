"""``POST /v1/responses``: admit, then be a reader like any other."""

import asyncio
from contextlib import suppress

from responses_app.errors import ApiError, ResponseDeleted
from responses_app.eventlog import LogErased, event_store
from responses_app.fold import ResponseBody, json_body
from responses_app.requests.body import parse_object
from responses_app.requests.create import read_create
from responses_app.requests.headers import IGNORED_HEADER, SESSION_HEADER, ignored_value, read_session_id
from responses_app.services.admit import Admitted, admit
from responses_app.services.cancel import request_cancel
from responses_app.states import OnDisconnect
from responses_app.streaming.http import Headers, HttpConsumer
from responses_app.streaming.pump import pump


class CreateResponseConsumer(HttpConsumer):
    def __init__(self) -> None:
        super().__init__()
        self._admitting: asyncio.Future[Admitted] | None = None

    async def answer(self, body: bytes) -> None:
        principal = await self.principal()
        session_id = read_session_id(self.header(SESSION_HEADER))
        request = await event_store.read(lambda: read_create(parse_object(body), principal, session_id))
        self._admitting = asyncio.ensure_future(admit(request.admission))
        admitted = await asyncio.shield(self._admitting)
        headers = _headers(admitted, request.admission.ignored)
        if request.wants_stream:
            await self.start_stream(headers)
            await pump(self, admitted.response_id, position=-1)
        elif request.admission.is_background:
            await self.send_json(json_body(admitted.body), headers=headers)
        else:
            final = await self._final(admitted.response_id)
            await self.send_json(json_body(final), headers=headers)

    async def _final(self, response_id: str) -> ResponseBody:
        try:
            return await event_store.wait_final(response_id)
        except LogErased:
            raise ResponseDeleted(response_id) from None

    async def disconnected(self) -> None:
        """A client that leaves while it is being admitted has left a response behind all the same."""
        if self._admitting is None:
            return
        with suppress(ApiError):
            admitted = await self._admitting
            if admitted.on_disconnect is OnDisconnect.CANCEL:
                request_cancel(admitted.response_id)


def _headers(admitted: Admitted, ignored: tuple[str, ...]) -> Headers:
    headers: Headers = [(SESSION_HEADER.lower().encode(), admitted.session_id.encode())]
    left_out = [*ignored, *(f"deleted turn {turn}" for turn in admitted.skipped_turns)]
    if left_out:
        headers.append((IGNORED_HEADER.lower().encode(), ignored_value(left_out).encode()))
    return headers
