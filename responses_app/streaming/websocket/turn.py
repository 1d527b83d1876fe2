"""One turn on a WebSocket."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from responses_app.database import database
from responses_app.eventlog import LogErased, Segment, final_body
from responses_app.eventlog.store import event_store
from responses_app.http.principals import Principal
from responses_app.metrics import events_delivered, streams_open
from responses_app.protocol.errors import InvalidRequest, ResponseDeleted
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status
from responses_app.requests.create import read_create
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.admit import admit
from responses_app.streaming.generating import leave_admitted
from responses_app.streaming.websocket.connection import Connection, Turn
from responses_app.streaming.websocket.prepared import is_generating, prepared_turn

IDLE_SECS = 60  # between empty reads of the log; the server sends the pings
DATA = b"\ndata: "
Send = Callable[[bytes], Awaitable[None]]


class SocketTurn:
    def __init__(self, connection: Connection, body: dict[str, Any], send: Send) -> None:
        self._connection = connection
        self._body = body
        self._send = send
        self._admitting: asyncio.Future[Admitted] | None = None

    async def run(self) -> None:
        previous = self._body.get("previous_response_id")
        status = str(Status.FAILED)
        try:
            body = await self._respond()
            status = body["status"]
        finally:
            if status == Status.FAILED and isinstance(previous, str):
                # The client of a failed turn sends its whole context again.
                self._connection.memory.evict(previous)

    def leave(self) -> None:
        if self._admitting is not None:
            self._admitting.add_done_callback(leave_admitted)

    async def _respond(self) -> ResponseBody:
        principal = await self._connection.principal()
        generate = self._body.pop("generate", None)
        admission = await database.read(self._read, principal)
        if not is_generating(generate):
            return await self._prepare(admission)
        self._admitting = asyncio.ensure_future(admit(admission))
        admitted = await asyncio.shield(self._admitting)
        with streams_open.track_inprogress():
            final = await self._read_log(admitted.response_id)
        if not admission.is_stored:
            self._connection.memory.keep(admitted.response_id, Turn(admission, final["output"]))
        return final

    def _read(self, principal: Principal) -> Admission:
        connection = self._connection
        if self._body.get("background"):
            raise _meaningless("background")
        if self._body.get("stream") is False:
            raise _meaningless("stream")
        request = read_create(self._body, principal, connection.session_id, connection.options)
        admission = replace(
            request.admission,
            session_key=connection.session_key,
            turn_policy=connection.turn_policy,
            reasoning_form=connection.reasoning_form,
        )
        return connection.memory.continued(admission)

    async def _read_log(self, response_id: str) -> ResponseBody:
        last: Segment | None = None
        try:
            async for segments in event_store.read_after(response_id, -1, IDLE_SECS):
                for segment in segments:
                    await self._send_frames(segment)
                    last = segment
                    events_delivered.inc(segment.event_count)
        except LogErased:
            raise ResponseDeleted(response_id) from None
        assert last is not None
        return final_body(last)

    async def _prepare(self, admission: Admission) -> ResponseBody:
        """``generate: false``: nothing runs; the next turn may continue this input."""
        segment, body = prepared_turn(admission)
        await self._send_frames(segment)
        self._connection.memory.keep(body["id"], Turn(admission, []))
        return body

    async def _send_frames(self, segment: Segment) -> None:
        for frame in segment.public_frames():
            await self._send(frame[frame.index(DATA) + len(DATA) : -2])


def _meaningless(name: str) -> InvalidRequest:
    return InvalidRequest(f"{name} has no meaning on a WebSocket: leave it out.", param=name)
