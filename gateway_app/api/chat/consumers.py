"""``POST /v1/chat/completions``: admitted like any response, and read in another form."""

from typing import Any

from gateway_app.api.chat.payloads import completion, failure_of, trouble_of
from gateway_app.api.chat.renderers import ChatView
from gateway_app.api.chat.requests import (
    DETAIL_HEADER,
    ChatRequest,
    read_chat,
    wants_detail,
)
from responses_app.database import database
from responses_app.models import ToolEvent
from responses_app.models.tool_events import ToolStatus
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.response_object import ResponseBody
from responses_app.requests.headers import SESSION_HEADER, read_session_id
from responses_app.requests.json_body import parse_body
from responses_app.requests.tools import FORM_HEADER
from responses_app.services.lifecycle.admission import Admitted
from responses_app.streaming.base import Headers
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump

MAX_ERROR_CHARS = 200  # of a header


class ChatConsumer(GeneratingConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        is_detailed = wants_detail(self.header(DETAIL_HEADER))
        session_id = read_session_id(self.header(SESSION_HEADER))
        form = self.header(FORM_HEADER)
        asked = await parse_body(body)
        request = await database.read(read_chat, asked, principal, session_id, form)
        admitted = await self._admit(request, asked)
        headers = self.admitted_headers(admitted, request.admission.ignored)
        if request.wants_stream:
            await self.start_stream(headers)
            view = ChatView(wants_usage=request.wants_usage, is_detailed=is_detailed)
            await pump(self, admitted.response_id, position=-1, view=view)
        else:
            await self._answer_whole(await self.final(admitted.response_id), headers)

    async def _admit(self, request: ChatRequest, asked: dict[str, Any]) -> Admitted:
        try:
            return await self.admit(request.admission, asked)
        except InvalidRequest as error:
            raise request.explained(error) from None

    async def _answer_whole(self, body: ResponseBody, headers: Headers) -> None:
        failure = failure_of(body)
        if failure is not None:
            has_run_tools = await database.read(_has_run_tools, body["id"])
            await self.send_error(failure_of(body, has_run_tools=has_run_tools) or failure, headers)
        else:
            await self.send_json(completion(body), headers=headers + _trouble_headers(body))


def _has_run_tools(response_id: str) -> bool:
    return (
        ToolEvent.objects.filter(response_id=response_id).exclude(status=ToolStatus.DENIED).exists()
    )


def _trouble_headers(body: ResponseBody) -> Headers:
    trouble = trouble_of(body)
    if trouble is None:
        return []
    said = str(trouble["error"]).encode("unicode_escape")[:MAX_ERROR_CHARS]
    partial = str(trouble["partial"]).lower().encode()
    return [
        (b"x-hermes-completed", b"false"),
        (b"x-hermes-partial", partial),
        (b"x-hermes-error", said),
    ]
