"""``POST /api/sessions/{session_id}/chat`` and ``/chat/stream``: one more turn of a session."""

from gateway_app.api.runs.renderers import failure_message
from gateway_app.api.sessions.payloads import turn_completion
from gateway_app.api.sessions.renderers import (
    SessionChatView,
    outcome_fields,
)
from gateway_app.api.sessions.turn_request import read_chat
from responses_app.database import database
from responses_app.protocol.errors import SERVER, ApiError
from responses_app.protocol.failures import retry_headers
from responses_app.protocol.response_object import ResponseBody
from responses_app.requests.json_body import parse_body
from responses_app.services.history.chain import input_of
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.sessions import find_session
from responses_app.streaming.base import Headers
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump


class TurnFailed(ApiError):
    """The failed turn is part of the session; a repeated request would add another turn."""

    status = 502
    type = SERVER
    headers = {"x-should-retry": "false"}

    def __init__(self, body: ResponseBody) -> None:
        reason = (body["incomplete_details"] or {}).get("reason")
        error = body["error"]
        code = error["code"] if error else reason
        message = failure_message(error, reason)
        super().__init__(message, code=code)
        self.headers = retry_headers(message) | self.headers


class SessionConsumer(GeneratingConsumer):
    async def begin(self, body: bytes) -> tuple[Admitted, Headers]:
        principal = await self.principal()
        fields = await parse_body(body)

        def read() -> Admission:
            session = find_session(principal.owner_id, self.path_args["session_id"])
            return read_chat(fields, principal, session, self.client_options)

        admission = await database.read(read)
        admitted = await self.admit(admission, fields)
        return admitted, self.admitted_headers(admitted, admission.ignored)


class SessionChatConsumer(SessionConsumer):
    async def respond(self, body: bytes) -> None:
        admitted, headers = await self.begin(body)
        final, final_headers = await self.final(admitted.response_id)
        headers += final_headers
        if outcome_fields(final)["failed"]:
            await self.send_error(TurnFailed(final), headers)
        else:
            await self.send_json(turn_completion(admitted, final), headers=headers)


class SessionChatStreamConsumer(SessionConsumer):
    async def respond(self, body: bytes) -> None:
        admitted, headers = await self.begin(body)
        input_items = await database.read(input_of, admitted.response_id)
        await self.start_stream(headers)
        view = SessionChatView(admitted.response_id, admitted.session_id, input_items)
        await pump(self, admitted.response_id, -1, view)
