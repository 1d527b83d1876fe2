"""The HTTP side of a streaming consumer: body in, one answer out, disconnects seen at once."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import orjson
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.conf import settings

from responses_app.database import database
from responses_app.http.principals import Principal, authenticate
from responses_app.protocol.errors import (
    ApiError,
    BodyTooLarge,
    InternalError,
    Unauthenticated,
)
from responses_app.streaming.revocation import Credential, credential_of, revocation

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
JSON_HEADERS: Headers = [(b"content-type", b"application/json")]
STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


CHECKED_PRINCIPAL = "hermes.principal"  # in the scope: the server has checked the key a moment ago
CUTS = "hermes.cut"  # the ASGI extension of a server that resets a connection whose answer was begun and not ended


class HttpConsumer(AsyncConsumer, ABC):
    """Answers in a task of its own, raced against the client's disconnect.

    Channels' own HTTP consumer awaits its handler inside the dispatch and sees neither a
    disconnect nor anything else until the handler is done.
    """

    channel_layer_alias = (
        "none"  # wake-ups come from the event log; a channel per request would cost a receive loop
    )

    def __init__(self) -> None:
        super().__init__()
        self._body: list[bytes] = []
        self.body_bytes = 0
        self._answer: asyncio.Task[None] | None = None
        self._has_started = False
        self._is_revoked = False
        self._watches = ExitStack()  # of the credential this request came with

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any
    ) -> None:
        async def receive_or_finish() -> Message:
            if self._answer is None:
                return await receive()
            incoming = asyncio.ensure_future(receive())
            await asyncio.wait({incoming, self._answer}, return_when=asyncio.FIRST_COMPLETED)
            if not self._answer.done():
                return incoming.result()
            incoming.cancel()  # whoever has been answered has not left, whatever the server says of the connection
            return {"type": "http.finished"}

        try:
            await super().__call__(scope, receive_or_finish, send)
        finally:
            self._watches.close()
            await self._stop_answer()

    # -- messages -----------------------------------------------------------------------
    async def http_request(self, message: Message) -> None:
        if self._answer is not None:
            return
        self._body.append(message.get("body", b""))
        self.body_bytes += len(self._body[-1])
        if self.body_bytes > settings.MAX_BODY_BYTES or not message.get("more_body"):
            self._answer = asyncio.create_task(self._answer_safely())

    async def http_disconnect(self, message: Message) -> None:
        await self._stop_answer()
        await self.disconnected()
        raise StopConsumer

    async def http_finished(self, message: Message) -> None:
        raise StopConsumer

    # -- for subclasses -----------------------------------------------------------------
    @abstractmethod
    async def answer(self, body: bytes) -> None:
        """Send the whole answer to a request with this body."""

    async def disconnected(self) -> None:
        """The client left before the answer was complete."""

    async def principal(self) -> Principal:
        authorization = self.header("authorization")
        principal: Principal | None = self.scope.get(CHECKED_PRINCIPAL)
        if principal is None:
            principal = await database.read(authenticate, authorization)
        self.end_when_revoked(credential_of(principal, authorization))
        return principal

    def end_when_revoked(self, credential: Credential | None) -> None:
        self._watches.enter_context(revocation.watched(credential, self._revoke))

    def _revoke(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._is_revoked = True
            self._answer.cancel()

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode()
        for key, value in self.scope["headers"]:
            if key == wanted:
                return str(value.decode("latin-1"))
        return None

    @property
    def path_args(self) -> dict[str, Any]:
        args: dict[str, Any] = self.scope["url_route"]["kwargs"]
        return args

    async def send_json(
        self, payload: Any, *, status: int = 200, headers: Headers | None = None
    ) -> None:
        await self._start(status, JSON_HEADERS + (headers or []))
        await self.send_chunk(orjson.dumps(payload), is_last=True)

    async def send_error(self, error: ApiError, headers: Headers | None = None) -> None:
        told = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        await self.send_json(error.body(), status=error.status, headers=[*(headers or []), *told])

    async def start_stream(self, headers: Headers) -> None:
        await self._start(200, STREAM_HEADERS + headers)

    async def send_chunk(self, chunk: bytes, *, is_last: bool = False) -> None:
        await self.send({"type": "http.response.body", "body": chunk, "more_body": not is_last})

    async def cut(self) -> None:
        """End without an end, so that half a stream does not look whole; the client resumes it."""
        if CUTS not in (self.scope.get("extensions") or {}):
            await self.send_chunk(
                b"", is_last=True
            )  # it would stay open for ever; no [DONE] came at least

    # -- the steps ----------------------------------------------------------------------
    async def _start(self, status: int, headers: Headers) -> None:
        self._has_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def _answer_safely(self) -> None:
        """Every error is an answer of ours: a server's own error page is not JSON."""
        try:
            if self.body_bytes > settings.MAX_BODY_BYTES:
                raise BodyTooLarge(settings.MAX_BODY_BYTES)
            await self.answer(b"".join(self._body))
        except asyncio.CancelledError:
            if not self._is_revoked:
                raise
            await self._end_with(
                Unauthenticated("The key or the login of this request is not valid any more.")
            )
        except ApiError as error:
            await self._end_with(error)
        except Exception:
            # Not the path: the names of sessions and conversations in it are the client's.
            logger.exception("%s %s failed", self.scope["method"], type(self).__name__)
            await self._end_with(InternalError())

    async def _end_with(self, error: ApiError) -> None:
        if self._has_started:
            await self.cut()
        else:
            await self.send_error(error)

    async def _stop_answer(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.cancel()
            await asyncio.wait({self._answer})
