"""The base of streaming consumers: reads the body, responds, notices a disconnect at once."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qs

import orjson
from channels.consumer import AsyncConsumer
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
# In the scope: the principal of a key that the server has just checked.
CHECKED_PRINCIPAL = "hermes.principal"
# The ASGI extension of a server that resets a connection whose response has started and not ended.
CUTS = "hermes.cut"
# The ASGI extension of a server to which a part of a body can be passed without awaiting it: it has
# ``is_ready``, and ``write`` for a part that is not empty.
PROMPT_WRITES = "hermes.prompt_writes"
DISCONNECT = "http.disconnect"


def query_param(scope: Message, name: str) -> str | None:
    """The last value of a parameter, as Django's ``QueryDict`` has it."""
    query_string: str = scope["query_string"].decode("latin-1")
    values = parse_qs(query_string, keep_blank_values=True).get(name)
    if values is None:
        return None
    return values[-1]


class HttpConsumer(AsyncConsumer, ABC):
    """Responds in a task of its own, raced against the client's disconnect.

    Channels' own HTTP consumer awaits its handler inside the dispatch and receives neither a
    disconnect nor anything else until the handler is done. Its dispatch also visits a thread for
    each message, to close connections that nothing here uses.
    """

    def __init__(self) -> None:
        super().__init__()
        self._body: list[bytes] = []
        self.body_bytes = 0
        self._responding: asyncio.Task[None] | None = None
        self._has_started = False
        self._is_revoked = False
        self._headers: dict[str, str] = {}
        self._prompt_writes: Message | None = None
        self._watches = ExitStack()  # on the credential of this request

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any
    ) -> None:
        self.scope = scope
        self._headers = _texts(scope["headers"])
        self.base_send = send
        self._prompt_writes = (scope.get("extensions") or {}).get(PROMPT_WRITES)
        leaving: asyncio.Future[None] | None = None
        try:
            if not await self._read_body(receive):
                return
            self._responding = asyncio.create_task(self._respond_safely())
            leaving = asyncio.ensure_future(_until_disconnect(receive))
            await asyncio.wait({leaving, self._responding}, return_when=asyncio.FIRST_COMPLETED)
            # A disconnect after the whole response is no disconnect.
            if not self._responding.done():
                leaving.result()
                await self._stop_responding()
                await self.disconnected()
        finally:
            if leaving is not None:
                leaving.cancel()
            self._watches.close()
            await self._stop_responding()

    async def _read_body(self, receive: Callable[[], Awaitable[Message]]) -> bool:
        """Up to its end, or until it is too large; False if the client leaves before."""
        has_more = True
        while has_more and self.body_bytes <= settings.MAX_BODY_BYTES:
            message = await receive()
            if message["type"] == DISCONNECT:
                return False
            self._body.append(message.get("body", b""))
            self.body_bytes += len(self._body[-1])
            has_more = message.get("more_body", False)
        return True

    # -- for subclasses -----------------------------------------------------------------
    @abstractmethod
    async def respond(self, body: bytes) -> None:
        """Send the whole response to a request with this body."""

    async def disconnected(self) -> None:
        """The client left, or lost its key, before the response was complete."""

    async def principal(self) -> Principal:
        authorization = self.header("authorization")
        principal: Principal | None = self.scope.get(CHECKED_PRINCIPAL)
        if principal is None:
            principal = await database.look_up(authenticate, authorization)
        self.end_when_revoked(credential_of(principal, authorization))
        return principal

    def end_when_revoked(self, credential: Credential | None) -> None:
        self._watches.enter_context(revocation.watched(credential, self._revoke))

    def _revoke(self) -> None:
        if self._responding is not None and not self._responding.done():
            self._is_revoked = True
            self._responding.cancel()

    def header(self, name: str) -> str | None:
        return self._headers.get(name.lower())

    def query_param(self, name: str) -> str | None:
        return query_param(self.scope, name)

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
        sent = list(headers or [])
        for name, value in error.headers.items():
            sent.append((name.lower().encode(), value.encode()))
        await self.send_json(error.body(), status=error.status, headers=sent)

    async def start_stream(self, headers: Headers) -> None:
        await self._start(200, STREAM_HEADERS + headers)

    async def send_chunk(self, chunk: bytes, *, is_last: bool = False) -> None:
        message = {"type": "http.response.body", "body": chunk, "more_body": not is_last}
        await self.base_send(message)  # as ``send`` of Channels does, which only passes it on

    @property
    def sends_at_once(self) -> bool:
        """Whether ``send_at_once`` may be called now, within a stream and outside of ``send``."""
        return self._prompt_writes is not None and self._prompt_writes["is_ready"]()

    def send_at_once(self, chunk: bytes) -> None:
        """``send_chunk`` without a task."""
        if self._prompt_writes is not None and chunk:
            self._prompt_writes["write"](chunk)

    async def cut(self) -> None:
        """End uncleanly, so that half a stream does not look whole; the client resumes it."""
        if CUTS not in (self.scope.get("extensions") or {}):
            # Other servers would keep the connection open for ever. At least no [DONE] was sent.
            await self.send_chunk(b"", is_last=True)

    # -- steps --------------------------------------------------------------------------
    async def _start(self, status: int, headers: Headers) -> None:
        self._has_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def _respond_safely(self) -> None:
        """Turn every error into a response: a server's own error page is not JSON."""
        try:
            if self.body_bytes > settings.MAX_BODY_BYTES:
                raise BodyTooLarge(settings.MAX_BODY_BYTES)
            await self.respond(b"".join(self._body))
        except asyncio.CancelledError:
            if not self._is_revoked:
                raise
            await self.disconnected()
            await self._end_with(
                Unauthenticated("The key or the login of this request is not valid any more.")
            )
        except ApiError as error:
            await self._end_with(error)
        except Exception:
            # Without the path: it may contain a client's names of sessions and conversations.
            logger.exception("%s %s failed", self.scope["method"], type(self).__name__)
            await self.disconnected()
            await self._end_with(InternalError())

    async def _end_with(self, error: ApiError) -> None:
        if self._has_started:
            await self.cut()
        else:
            await self.send_error(error)

    async def _stop_responding(self) -> None:
        if self._responding is not None and not self._responding.done():
            self._responding.cancel()
            await asyncio.wait({self._responding})


def _texts(headers: Headers) -> dict[str, str]:
    """By their names in lower case; of several with one name, the first one."""
    texts: dict[str, str] = {}
    for name, value in headers:
        texts.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return texts


async def _until_disconnect(receive: Callable[[], Awaitable[Message]]) -> None:
    """The rest of a body that is too large is dropped."""
    while (await receive())["type"] != DISCONNECT:
        pass
