"""One request of a connection."""

import asyncio
import re
from io import BytesIO
from typing import Any

import orjson
from daphne.http_protocol import WebRequest
from django.conf import settings

from gateway_app.server import refusals
from responses_app.errors import ApiError, BodyTooLarge, InternalError

PATH_COMPLAINTS = ("Invalid characters in path", "Invalid query string")  # Daphne's words
CUT_SECS = 0.05  # for the last words: what is written waits for the next turn of the loop, and a cut drops it
HANDSHAKE_VERSIONS = (b"13", b"8")
HANDSHAKE_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
HANDSHAKE_HEADERS = (b"host", b"sec-websocket-key", b"sec-websocket-version")


class GatewayRequest(WebRequest):
    channel: Any
    content: Any

    def __init__(self, channel: Any, queued: int) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)
        self.is_writable: asyncio.Event = channel.is_writable

    def lower_headers(self) -> dict[bytes, bytes]:
        return {name.lower(): values[-1] for name, values in self.requestHeaders.getAllRawHeaders()}

    # -- the body -----------------------------------------------------------------------
    def gotLength(self, length: int | None) -> None:
        """Keep the body in memory: Twisted's temporary file has no limit, and is a trace of what must leave none."""
        self.content = BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.is_refused:
            return
        if self.content.tell() + len(data) > settings.MAX_BODY_BYTES:
            self.content.truncate(0)
            self.channel.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
        else:
            super().handleContentChunk(data)

    def process(self) -> Any:
        # Daphne would believe any client that claims to be a proxy in front of it.
        self.requestHeaders.removeHeader(b"daphne-root-path")
        if not self._has_websocket_handshake():
            self.requestHeaders.removeHeader(b"upgrade")  # a server may ignore it, and its 400 would have no body
        transport: Any = self.transport
        processed = super().process()
        if self.transport is None:  # it is a WebSocket's now, and the channel still hears when it is full
            transport.protocol.is_writable = self.is_writable
        if self.content is not None:
            self.content.truncate(0)  # the application has it: a stream would keep the body for as long as it lasts
        return processed

    def _has_websocket_handshake(self) -> bool:
        if self.method != b"GET" or not all(map(self.requestHeaders.hasHeader, HANDSHAKE_HEADERS)):
            return False
        told = self.lower_headers()
        is_spoken_here = told[b"sec-websocket-version"].strip() in HANDSHAKE_VERSIONS
        return is_spoken_here and HANDSHAKE_KEY.fullmatch(told[b"sec-websocket-key"].strip()) is not None

    # -- the end ------------------------------------------------------------------------
    def application_ended(self, application: asyncio.Future[None]) -> None:
        if not self.finished and self.channel is not None:
            self._end_unanswered()

    def handle_exception(self, exception: Exception) -> None:
        """Called by Daphne's housekeeping, which would end for good if this raised; answered already."""

    def _end_unanswered(self) -> None:
        """Half an answer is cut: ended in good order, it would look whole."""
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
            error = refusals.BAD_PATH if body in PATH_COMPLAINTS else refusals.BAD_HEADER
        headers = refusals.refusal_headers(self.lower_headers())
        self.handle_reply({"type": "http.response.start", "status": error.status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": orjson.dumps(error.body())})
