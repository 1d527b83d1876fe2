"""One turn on a WebSocket."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from responses_app.database import database
from responses_app.eventlog import LogErased, Numbering, Segment, final_body
from responses_app.eventlog.store import event_store
from responses_app.http.principals import Principal, authenticate
from responses_app.metrics import events_delivered, streams_open
from responses_app.models.sessions import TurnPolicy
from responses_app.protocol import events
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.errors import InvalidRequest, ResponseDeleted
from responses_app.protocol.events import Event
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.response_object import ResponseBody, UsageBody, initial_body
from responses_app.protocol.status import Status
from responses_app.requests.create import read_create
from responses_app.requests.fields import boolean, short_text
from responses_app.requests.tools import FORM_HEADER
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.admit import admit
from responses_app.streaming.generating import leave_admitted
from responses_app.streaming.websocket.memory import SocketMemory, Turn

IDLE_SECS = 60  # between empty reads of the log; the server sends the pings
MAX_STREAM_ID_CHARS = 256
DATA = b"\ndata: "
NO_USAGE: UsageBody = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}

Send = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True)
class Connection:
    """What all turns of a socket share: the headers of its handshake, and its memory."""

    header: Callable[[str], str | None]
    session_id: str | None
    session_key: str | None
    turn_policy: TurnPolicy | None
    memory: SocketMemory = field(default_factory=SocketMemory)

    async def principal(self) -> Principal:
        """Checked for every turn: a key may be revoked while a socket is open."""
        return await database.read(authenticate, self.header("authorization"))


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
        if generate is not None and not boolean(generate, "generate"):
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
        request = read_create(
            self._body, principal, connection.session_id, connection.header(FORM_HEADER)
        )
        admission = replace(
            request.admission,
            session_key=connection.session_key,
            turn_policy=connection.turn_policy,
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
        response_id = new_response_id()
        body = initial_body(
            response_id,
            model=admission.model,
            created_at=int(time.time()),
            status=Status.IN_PROGRESS,
            echo=admission.echo,
        )
        opening: list[Event] = [
            {"type": events.CREATED, "response": body},
            {"type": events.IN_PROGRESS, "response": body},
        ]
        builder = OutputBuilder(response_id, opening)
        builder.finish(Status.COMPLETED, usage=NO_USAGE)
        await self._send_frames(Numbering(response_id, attempt=0).seal(opening + builder.take()))
        self._connection.memory.keep(response_id, Turn(admission, []))
        return builder.snapshot.body()

    async def _send_frames(self, segment: Segment) -> None:
        for frame in segment.public_frames():
            await self._send(frame[frame.index(DATA) + len(DATA) : -2])


def read_stream_id(value: Any) -> str | None:
    if value is None:
        return None
    return str(short_text(MAX_STREAM_ID_CHARS)(value, "stream_id"))


def _meaningless(name: str) -> InvalidRequest:
    return InvalidRequest(f"{name} has no meaning on a WebSocket: leave it out.", param=name)
