"""``ws://…/v1/responses``: turns on one connection, each admitted and read as over HTTP."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import orjson
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.conf import settings

from responses_app.http.request_gate import request_gate
from responses_app.http.websocket_rejection import reject_handshake
from responses_app.protocol import events
from responses_app.protocol.errors import (
    ApiError,
    BodyTooLarge,
    InternalError,
    InvalidRequest,
    ResponseInterrupted,
)
from responses_app.requests.fields import short_text
from responses_app.requests.json_body import parse_body
from responses_app.streaming.revocation import credential_of, revocation
from responses_app.streaming.websocket.connection import Connection
from responses_app.streaming.websocket.turn import SocketTurn

logger = logging.getLogger(__name__)

Message = dict[str, Any]
MAX_STREAM_ID_CHARS = 256
MAX_TURNS = 32  # on one socket, running and waiting
GOING_AWAY = 1001
POLICY_VIOLATION = 1008
SERVICE_RESTART = 1012  # a code after which SDKs connect again
# Where clients of a WebSocket expect another status than those of HTTP.
HTTP_STATUS = {"previous_response_not_found": 400}


class ClientLeft(Exception):
    """An event could not be sent; ``websocket.disconnect`` is on its way."""


class ResponsesSocket(AsyncConsumer):
    """Turns of one lane (``stream_id``, or none) run one after the other; lanes run in parallel."""

    channel_layer_alias = "none"

    def __init__(self) -> None:
        super().__init__()
        self._lanes: dict[str | None, asyncio.Task[None]] = {}
        self._turns: dict[asyncio.Task[None], SocketTurn] = {}
        self._limit: asyncio.Task[None] | None = None
        self._is_over = False
        self._watches = ExitStack()  # on the key that opened this connection
        self._revoked: asyncio.Task[None] | None = None
        self._shutting_down: asyncio.Task[None] | None = None
        self._connection: Connection

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any
    ) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._abandon()

    # -- messages -----------------------------------------------------------------------
    async def websocket_connect(self, message: Message) -> None:
        try:
            self._connection = Connection.from_handshake(self._header)
            principal = await self._connection.principal()
        except ApiError as error:
            await reject_handshake(error, self.scope, self.send)
            raise StopConsumer from None
        credential = credential_of(principal, self._connection.authorization)
        self._watches.enter_context(revocation.watched(credential, self._revoke))
        self._limit = asyncio.create_task(self._end_in_time())
        request_gate.close_callbacks.add(self._close_for_shutdown)
        await self.send({"type": "websocket.accept"})

    async def websocket_receive(self, message: Message) -> None:
        stream_id: str | None = None
        try:
            body = await self._parsed(message)
            given = body.pop("stream_id", None)
            if given is not None:
                stream_id = short_text(MAX_STREAM_ID_CHARS)(given, "stream_id")
            await self._take(body, stream_id)
        except ApiError as error:
            await self._send_error(error, stream_id)

    async def websocket_disconnect(self, message: Message) -> None:
        self._abandon()
        raise StopConsumer

    # -- steps --------------------------------------------------------------------------
    async def _parsed(self, message: Message) -> dict[str, Any]:
        text = message.get("text") or ""
        raw: bytes = text.encode("utf-8", "surrogatepass") or message.get("bytes") or b""
        if len(raw) > settings.MAX_BODY_BYTES:
            raise BodyTooLarge(settings.MAX_BODY_BYTES)
        return await parse_body(raw)

    async def _take(self, body: dict[str, Any], stream_id: str | None) -> None:
        kind = body.pop("type", None)
        if kind == events.STEER:
            return await self._refuse_steering(body, stream_id)
        if kind != events.CREATE:
            raise InvalidRequest(
                f"type is {kind!r}; this server takes response.create.",
                param="type",
                code="unknown_event_type",
            )
        if self._is_over:
            raise limit_reached()
        if len(self._turns) >= MAX_TURNS:
            raise ApiError(
                f"{MAX_TURNS} turns run or wait on this socket. "
                "Wait for one to end, or open another socket.",
                status=429,
                code="too_many_turns",
            )
        self._start(SocketTurn(self._connection, body, self._sender(stream_id)), stream_id)

    def _start(self, turn: SocketTurn, lane: str | None) -> None:
        task = asyncio.create_task(self._run_after(self._lanes.get(lane), turn, lane))
        self._lanes[lane] = task
        self._turns[task] = turn
        task.add_done_callback(partial(self._ended, lane=lane))

    async def _run_after(
        self, earlier: asyncio.Task[None] | None, turn: SocketTurn, lane: str | None
    ) -> None:
        """One turn; after an error in it, the socket stays open for the next."""
        if earlier is not None:
            await asyncio.wait({earlier})
        try:
            await self._run(turn, lane)
        except ClientLeft:
            turn.leave()  # the disconnect finds only turns that have not ended

    async def _run(self, turn: SocketTurn, lane: str | None) -> None:
        try:
            await turn.run()
        except ClientLeft:
            raise
        except ResponseInterrupted:
            return  # the close code of a shutdown reports it
        except ApiError as error:
            await self._send_error(error, lane)
        except Exception:
            logger.exception("A turn of a WebSocket failed")
            await self._send_error(InternalError(), lane)

    def _ended(self, task: asyncio.Task[None], lane: str | None) -> None:
        del self._turns[task]
        if self._lanes.get(lane) is task:
            del self._lanes[lane]

    async def _end_in_time(self) -> None:
        """Close the socket an hour after it was opened, when its turns have ended."""
        await asyncio.sleep(settings.HERMES_SOCKET_SECS)
        self._is_over = True
        while self._turns:
            await asyncio.wait(set(self._turns))
        await self._send_error(limit_reached())
        await self._close(GOING_AWAY)

    def _revoke(self) -> None:
        if self._revoked is None:
            self._revoked = asyncio.create_task(self._close_after_revocation())

    async def _close_after_revocation(self) -> None:
        """A revoked key receives nothing more; stored turns go on."""
        self._abandon()
        await self._close(POLICY_VIOLATION)

    def _close_for_shutdown(self) -> None:
        self._shutting_down = asyncio.create_task(self._close_when_idle())

    async def _close_when_idle(self) -> None:
        """The process ends; another process continues the turns that are left."""
        while self._turns:
            await asyncio.wait(set(self._turns))
        await self._close(SERVICE_RESTART)

    async def _close(self, code: int) -> None:
        try:
            await self.send({"type": "websocket.close", "code": code})
        except Exception:  # plain Daphne sends no code but 1000
            await self.send({"type": "websocket.close"})

    def _abandon(self) -> None:
        """The client gets nothing more. Stored turns go on and can be read over HTTP; the others end."""
        request_gate.close_callbacks.discard(self._close_for_shutdown)
        self._watches.close()
        if self._limit is not None:
            self._limit.cancel()
        for task, turn in self._turns.items():
            task.cancel()
            turn.leave()

    async def _refuse_steering(self, body: dict[str, Any], stream_id: str | None) -> None:
        steer = {
            "previous_response_id": body.get("previous_response_id"),
            "input": body.get("input"),
        }
        error = {
            "type": "invalid_request_error",
            "code": "steering_not_supported",
            "message": "A running response can't be steered here; wait for its end, or cancel it.",
        }
        await self._sender(stream_id)({"type": events.STEER_FAILED, "error": error, "steer": steer})

    async def _send_error(self, error: ApiError, stream_id: str | None = None) -> None:
        status = HTTP_STATUS.get(error.code or "", error.status)
        await self._sender(stream_id)({"type": "error", "status": status} | error.body())

    def _sender(self, stream_id: str | None) -> Callable[[dict[str, Any] | bytes], Awaitable[None]]:
        """Sends events as frames; those of a lane get its ``stream_id``."""
        end = b"}"
        if stream_id is not None:
            end = b',"stream_id":' + orjson.dumps(stream_id) + b"}"

        async def send(event: dict[str, Any] | bytes) -> None:
            if not isinstance(event, bytes):
                event = orjson.dumps(event)
            message = {"type": "websocket.send", "text": (event[:-1] + end).decode()}
            try:
                await self.send(message)
            except Exception as error:  # each server has its own for a closed connection
                raise ClientLeft from error

        return send

    def _header(self, name: str) -> str | None:
        found = dict(self.scope["headers"]).get(name.lower().encode())
        if found is None:
            return None
        return str(found.decode("latin-1"))


def limit_reached() -> ApiError:
    minutes = settings.HERMES_SOCKET_SECS / 60
    return InvalidRequest(
        f"This WebSocket has been open for {minutes:g} minutes. Open another to go on.",
        code="websocket_connection_limit_reached",
    )
