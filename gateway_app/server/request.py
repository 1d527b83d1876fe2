"""One request of a connection."""

import asyncio
import re
import time
from io import BytesIO
from typing import Any

import orjson
from daphne.http_protocol import WebRequest
from django.conf import settings
from twisted.python.failure import Failure

from gateway_app.server import refusals
from gateway_app.server.limits import UNAUTHENTICATED_BODY_BYTES
from gateway_app.server.prompt_transport import PromptTransport
from responses_app.http.cors import Headers
from responses_app.http.principals import Principal
from responses_app.protocol.errors import ApiError, BodyTooLarge, InternalError

DAPHNE_PATH_ERRORS = ("Invalid characters in path", "Invalid query string")
# Written bytes are sent on the next turn of the loop; a connection that is cut at once drops them.
CUT_SECS = 0.05
HANDSHAKE_VERSIONS = (b"13", b"8")
HANDSHAKE_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
HANDSHAKE_HEADERS = {b"host", b"sec-websocket-key", b"sec-websocket-version"}


class GatewayRequest(WebRequest):
    channel: Any
    content: Any

    def __init__(self, channel: Any, queued: int) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)
        self.is_writable: asyncio.Event = channel.is_writable
        self._principal: Principal | None = None
        self._checked_at = 0.0
        self._is_unauthenticated = False
        self._budgeted_bytes = 0

    def header_list(self) -> Headers:
        lines = self.requestHeaders.getAllRawHeaders()
        return [(name.lower(), value) for name, values in lines for value in values]

    def lower_headers(self) -> dict[bytes, bytes]:
        return {name.lower(): values[-1] for name, values in self.requestHeaders.getAllRawHeaders()}

    # -- the body -----------------------------------------------------------------------
    def gotLength(self, length: int | None) -> None:
        """Keep the body in memory: Twisted's temporary file has no limit, and would be on disk."""
        self.content = BytesIO()

    def belongs_to(self, principal: Principal) -> None:
        self._principal = principal
        self._checked_at = time.monotonic()

    @property
    def fresh_principal(self) -> Principal | None:
        """None where the body took so long that the key may have been revoked since."""
        if time.monotonic() - self._checked_at >= settings.HERMES_POLL_SECS:
            return None
        return self._principal

    def belongs_to_none(self) -> None:
        self._is_unauthenticated = True

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.is_refused:
            return
        refusal = self._refusal_of_further(len(data))
        if refusal is not None:
            self.channel.refuse(refusal)
        else:
            super().handleContentChunk(data)

    def _refusal_of_further(self, count: int) -> ApiError | None:
        length = self.content.tell() + count
        if length > settings.MAX_BODY_BYTES:
            return BodyTooLarge(settings.MAX_BODY_BYTES)
        if not self._is_unauthenticated:
            return None
        if length > UNAUTHENTICATED_BODY_BYTES:
            return refusals.UnauthenticatedBodyTooLarge(UNAUTHENTICATED_BODY_BYTES)
        if not self.channel.factory.unauthenticated.take(count):
            return refusals.TooManyUnauthenticatedBytes()
        self._budgeted_bytes += count
        return None

    def drop_body(self) -> None:
        """The request is refused or over."""
        if self.content is not None and not self.content.closed:
            self.content.truncate(0)
        if self._budgeted_bytes:
            self.channel.factory.unauthenticated.give_back(self._budgeted_bytes)
            self._budgeted_bytes = 0

    def process(self) -> Any:
        # Daphne would believe any client that claims to be a proxy in front of it.
        self.requestHeaders.removeHeader(b"daphne-root-path")
        if not self._has_websocket_handshake():
            # A server may ignore the header; Daphne would answer with a 400 without a body.
            self.requestHeaders.removeHeader(b"upgrade")
        transport: Any = self.transport
        processed = super().process()
        if self.transport is None:
            # The transport is a WebSocket's now, and this channel still sets the flag.
            transport.protocol.is_writable = self.is_writable
        if self.content is not None:
            # The application has the body; a stream must not keep a copy as long as it lasts.
            self.content.truncate(0)
        return processed

    def _has_websocket_handshake(self) -> bool:
        headers = self.lower_headers()
        if self.method != b"GET" or not headers.keys() >= HANDSHAKE_HEADERS:
            return False
        if headers[b"sec-websocket-version"].strip() not in HANDSHAKE_VERSIONS:
            return False
        key = headers[b"sec-websocket-key"].strip()
        return HANDSHAKE_KEY.fullmatch(key) is not None

    def handle_reply(self, message: dict[str, Any]) -> None:
        """The head of a response, its first piece and its end are sent at once if they come together."""
        transport = getattr(self.channel, "transport", None)
        if not isinstance(transport, PromptTransport):
            super().handle_reply(message)
            return
        transport.hold()
        try:
            super().handle_reply(message)
        finally:
            transport.release()

    def is_ready_for_piece(self) -> bool:
        """The response has started, and the client reads it."""
        return self.channel is not None and bool(self.startedWriting) and self.is_writable.is_set()

    def write_piece(self, piece: bytes) -> None:
        """A part of the body of a response that has started; nothing if the client is gone."""
        if self.finished or self.channel is None:
            return
        transport = self.channel.transport
        is_prompt = isinstance(transport, PromptTransport) and transport.sends_at_once
        if self.chunked and is_prompt:  # as ``write`` would send it, past the layers of Twisted
            transport.send_at_once(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.sentLength += len(piece)
        else:
            self.write(piece)

    # -- the end ------------------------------------------------------------------------
    def connectionLost(self, reason: Failure) -> None:
        self.drop_body()
        super().connectionLost(reason)

    def finish(self) -> None:
        self.drop_body()
        super().finish()

    def application_ended(self, application: asyncio.Future[None]) -> None:
        if not self.finished and self.channel is not None:
            self._end_unanswered()

    def handle_exception(self, exception: Exception) -> None:
        """The client has its answer; an exception here would end Daphne's housekeeping for good."""

    def _end_unanswered(self) -> None:
        """Half a response is cut off: if it ended in good order, it would look whole."""
        if self._response_started:
            self.channel.callLater(CUT_SECS, self._cut)
        else:
            self.basic_error(InternalError.status, b"", "")

    def _cut(self) -> None:
        if self.channel is not None:
            self.channel.forceAbortClient()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Daphne's error page, in JSON."""
        error: ApiError = InternalError()
        if status < InternalError.status:
            error = refusals.BAD_HEADER
            if body in DAPHNE_PATH_ERRORS:
                error = refusals.BAD_PATH
        headers = refusals.refusal_headers(self.lower_headers())
        self.handle_reply(
            {"type": "http.response.start", "status": error.status, "headers": headers}
        )
        self.handle_reply({"type": "http.response.body", "body": orjson.dumps(error.body())})
