"""``POST /v1/chat/completions``: admitted as every response, and rendered in another form."""

from typing import Any

from gateway_app.api.chat.payloads import completion, failure_of, problem_of
from gateway_app.api.chat.renderers import ChatView
from gateway_app.api.chat.requests import (
    DETAIL_HEADER,
    ChatRequest,
    read_chat,
    wants_detail,
)
from responses_app.database import database
from responses_app.models import ToolEvent, ToolStatus
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.response_object import ResponseBody
from responses_app.requests.json_body import parse_body
from responses_app.services.lifecycle.admission import Admitted
from responses_app.streaming.base import Headers
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump

MAX_ERROR_CHARS = 200  # of a header


class ChatConsumer(GeneratingConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        is_detailed = wants_detail(self.header(DETAIL_HEADER))
        session_id = self.session_id
        fields = await parse_body(body)
        options = self.client_options
        request = await self.read_request(read_chat, fields, principal, session_id, options)
        admitted = await self._admit(request, fields)
        headers = self.admitted_headers(admitted, request.admission.ignored)
        if request.wants_stream:
            await self.start_stream(headers)
            view = ChatView(wants_usage=request.wants_usage, is_detailed=is_detailed)
            await pump(self, admitted.response_id, position=-1, view=view)
        else:
            final, final_headers = await self.final(admitted.response_id)
            await self._send_completion(final, headers + final_headers)

    async def _admit(self, request: ChatRequest, fields: dict[str, Any]) -> Admitted:
        try:
            return await self.admit(request.admission, fields)
        except InvalidRequest as error:
            raise request.explained(error) from None

    async def _send_completion(self, body: ResponseBody, headers: Headers) -> None:
        if failure_of(body) is None:
            await self.send_json(completion(body), headers=headers + _problem_headers(body))
            return
        has_run_tools = await database.read(_has_run_tools, body["id"])
        failure = failure_of(body, has_run_tools=has_run_tools)
        assert failure is not None
        await self.send_error(failure, headers)


def _has_run_tools(response_id: str) -> bool:
    calls = ToolEvent.objects.filter(response_id=response_id)
    return calls.exclude(status=ToolStatus.DENIED).exists()


def _problem_headers(body: ResponseBody) -> Headers:
    problem = problem_of(body)
    if problem is None:
        return []
    return [
        (b"x-hermes-completed", b"false"),
        (b"x-hermes-partial", str(problem["partial"]).lower().encode()),
        (b"x-hermes-error", problem["error"].encode("unicode_escape")[:MAX_ERROR_CHARS]),
    ]
