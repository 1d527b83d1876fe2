"""``POST /v1/responses``: admit, then be a reader like any other."""

from responses_app.eventlog import event_store
from responses_app.fold import json_body
from responses_app.requests.body import parse_object
from responses_app.requests.create import read_create
from responses_app.requests.headers import SESSION_HEADER, read_session_id
from responses_app.services.admit import Admitted, admit
from responses_app.services.cancel import request_cancel
from responses_app.states import OnDisconnect
from responses_app.streaming.http import Headers, HttpConsumer
from responses_app.streaming.pump import pump


class CreateResponseConsumer(HttpConsumer):
    def __init__(self) -> None:
        super().__init__()
        self._admitted: Admitted | None = None

    async def answer(self, body: bytes) -> None:
        principal = await self.principal()
        session_id = read_session_id(self.header(SESSION_HEADER))
        request = await event_store.read(lambda: read_create(parse_object(body), principal, session_id))
        admitted = self._admitted = await admit(request.admission)
        headers = _headers(admitted, request.admission.ignored)
        if request.wants_stream:
            await self.start_stream(headers)
            await pump(self, admitted.response_id, position=-1)
        elif request.admission.is_background:
            await self.send_json(json_body(admitted.body), headers=headers)
        else:
            final = await event_store.wait_final(admitted.response_id)
            await self.send_json(json_body(final), headers=headers)

    async def disconnected(self) -> None:
        if self._admitted is not None and self._admitted.on_disconnect is OnDisconnect.CANCEL:
            request_cancel(self._admitted.response_id)


def _headers(admitted: Admitted, ignored: tuple[str, ...]) -> Headers:
    headers: Headers = [(SESSION_HEADER.lower().encode(), admitted.session_id.encode())]
    left_out = [*ignored, *(f"deleted turn {turn}" for turn in admitted.skipped_turns)]
    if left_out:
        headers.append((b"x-hermes-ignored", ", ".join(left_out).encode("ascii", "replace")))
    return headers
