"""``POST /api/sessions/{session_id}/chat`` and ``/chat/stream``: one more turn of a session."""

from typing import Any

from gateway_app.api.runs.renderers import failure
from gateway_app.api.sessions.renderers import ChatView, how_it_ended, runtime
from gateway_app.api.sessions.requests import read_chat
from responses_app.database import database
from responses_app.protocol.errors import SERVER, ApiError
from responses_app.protocol.ids import run_id_of
from responses_app.protocol.response_object import ResponseBody
from responses_app.requests.json_body import parse_body
from responses_app.requests.tools import FORM_HEADER
from responses_app.services.history.chain import input_of
from responses_app.services.history.transcript import text_of_output, unanswered_calls
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.sessions import find_session
from responses_app.streaming.base import Headers
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump


class TurnFailed(ApiError):
    """The turn is part of the session, failed as it is: sent again, it would be another."""

    status = 502
    type = SERVER
    headers = {"x-should-retry": "false"}

    def __init__(self, body: ResponseBody) -> None:
        reason = (body["incomplete_details"] or {}).get("reason")
        error = body["error"]
        super().__init__(failure(error, reason), code=error["code"] if error else reason)


class SessionConsumer(GeneratingConsumer):
    async def begin(self, body: bytes) -> tuple[Admitted, Headers]:
        principal = await self.principal()
        asked = await parse_body(body)

        def read() -> Admission:
            session = find_session(principal.owner_id, self.path_args["session_id"])
            return read_chat(asked, principal, session, self.header(FORM_HEADER))

        admission = await database.read(read)
        admitted = await self.admit(admission, asked)
        return admitted, self.admitted_headers(admitted, admission.ignored)


class SessionChatConsumer(SessionConsumer):
    async def respond(self, body: bytes) -> None:
        admitted, headers = await self.begin(body)
        final = await self.final(admitted.response_id)
        if how_it_ended(final)["failed"]:
            await self.send_error(TurnFailed(final), headers)
        else:
            await self.send_json(_completion(admitted, final), headers=headers)


class SessionChatStreamConsumer(SessionConsumer):
    async def respond(self, body: bytes) -> None:
        admitted, headers = await self.begin(body)
        asked = await database.read(input_of, admitted.response_id)
        await self.start_stream(headers)
        await pump(
            self,
            admitted.response_id,
            -1,
            ChatView(admitted.response_id, admitted.session_id, asked),
        )


def _completion(admitted: Admitted, final: ResponseBody) -> dict[str, Any]:
    outcome = how_it_ended(final)
    calls = unanswered_calls(final["output"])
    message = {"role": "assistant", "content": text_of_output(final["output"])}
    return {
        "object": "hermes.session.chat.completion",
        "session_id": admitted.session_id,
        "run_id": run_id_of(admitted.response_id),
        "response_id": admitted.response_id,
        "message": message | ({"tool_calls": calls} if calls else {}),
        "usage": final["usage"],
        "runtime": runtime(final),
        **{name: outcome[name] for name in ("completed", "partial", "interrupted")},
    }
