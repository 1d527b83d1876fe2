"""``POST /v1/responses``: admit the request, then read the log as every other reader does."""

from dataclasses import replace

from responses_app.protocol.response_object import json_body
from responses_app.requests.create import read_create
from responses_app.requests.disconnect import DISCONNECT_HEADER, stops_with_client
from responses_app.requests.json_body import parse_body
from responses_app.services.lifecycle.admission import Admission
from responses_app.streaming.generating import GeneratingConsumer
from responses_app.streaming.pump import pump
from responses_app.streaming.renderers import ResponsesView


class CreateResponseConsumer(GeneratingConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        session_id = self.session_id
        fields = await parse_body(body)
        options = self.client_options
        request = await self.read_request(read_create, fields, principal, session_id, options)
        admitted = await self.admit(self._ending(request.admission), fields)
        headers = self.admitted_headers(admitted, request.admission.ignored)
        if request.wants_stream:
            await self.start_stream(headers)
            await pump(self, admitted.response_id, position=-1, view=ResponsesView())
        elif request.admission.is_background:
            await self.send_json(json_body(admitted.body), headers=headers)
        else:
            final, final_headers = await self.final(admitted.response_id)
            await self.send_json(json_body(final), headers=headers + final_headers)

    def _ending(self, admission: Admission) -> Admission:
        chosen = self.header(DISCONNECT_HEADER)
        if chosen is None:
            return admission
        stops = stops_with_client(
            chosen, is_stored=admission.is_stored, is_background=admission.is_background
        )
        return replace(admission, stops_with_client=stops)
