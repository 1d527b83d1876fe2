"""One connection: a request that can't be read is refused in JSON."""

import asyncio
from contextvars import Context
from enum import Enum, auto
from typing import Any

from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers

from gateway_app.server import refusals
from gateway_app.server.body_admission import Head, check_key, recent_principal
from gateway_app.server.limits import REFUSED_AT_ONCE, UNAUTHENTICATED_BODY_BYTES
from gateway_app.server.slow_readers import WriteLimitedChannel
from responses_app.http.principals import missing_key
from responses_app.protocol.errors import ApiError, BodyTooLarge

# A connection that is closed with unread bytes is reset, and the client loses the refusal. So what
# the client still sends is read and dropped, until it pauses or the second limit is over.
LINGER_IDLE_SECS = 2
LINGER_SECS = 30
MAX_LENGTH_DIGITS = 18  # Python refuses to read numbers of thousands of digits


class Part(Enum):
    """A part of a request that has to arrive in a limited time."""

    HEAD = auto()
    BODY = auto()


class GatewayChannel(WriteLimitedChannel):
    def __init__(self) -> None:
        super().__init__()
        self.is_refused = False
        self._awaited_part: Part | None = None
        self._read_deadline: Any = None
        self._key_check: asyncio.Task[None] | None = None
        # The refusal, if Twisted finds a fault in what it parses now: it names none.
        self._refusal_of_fault = refusals.BAD_REQUEST_LINE

    def connectionMade(self) -> None:
        super().connectionMade()
        connections = self.factory.server.open_connections
        connections.add(self.transport)
        if connections.excess > REFUSED_AT_ONCE:
            self.transport.abortConnection()
        elif connections.excess > 0:
            self.refuse(refusals.TooManyConnections(connections.limit))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.factory.server.open_connections.discard(self.transport)
        super().connectionLost(reason)
        self._await_part(None)
        if self._key_check is not None:
            self._key_check.cancel()

    # -- refusing -----------------------------------------------------------------------
    def refuse(self, error: ApiError) -> None:
        """Answer and end the connection: where the next request begins is not known."""
        if self.is_refused:
            return
        self.is_refused = True
        self.paused = False
        self._await_part(None)
        self.clearLineBuffer()
        self.transport.write(
            refusals.as_http(error, self._received_headers(), self.factory.server.server_name)
        )
        self._networkProducer.unregisterProducer()
        self._networkProducer.resumeProducing()
        self.transport.loseWriteConnection()
        for request in self.requests[-1:]:
            request.drop_body()
        self.setTimeout(LINGER_IDLE_SECS)
        self._abortingCall = self.callLater(LINGER_SECS, self.forceAbortClient)

    def _received_headers(self) -> dict[bytes, bytes]:
        if not self.requests:
            return {}
        headers: dict[bytes, bytes] = self.requests[-1].lower_headers()
        return headers

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(self._refusal_of_fault)

    def timeoutConnection(self) -> None:
        is_within_request = hasattr(self, "_command") or self._buffer
        if self.is_refused:
            self.transport.loseConnection()
        elif is_within_request:
            self.refuse(refusals.REQUEST_TIMEOUT)
        else:
            super().timeoutConnection()

    # -- reading ------------------------------------------------------------------------
    def dataReceived(self, data: bytes) -> None:
        if self.is_refused:
            self.resetTimeout()
        else:
            super().dataReceived(data)
            self._await_part(self._part_being_read())

    def requestDone(self, request: Any) -> None:
        """The application calls this, and the next request must not run in its context.

        The context names a thread, which ends with the request that is done.
        """
        Context().run(super().requestDone, request)

    def _part_being_read(self) -> Part | None:
        if self.is_refused or self.paused or self._handlingRequest:
            return None
        if not self.line_mode:
            return Part.BODY
        if hasattr(self, "_command") or self._buffer:
            return Part.HEAD
        return None

    def _await_part(self, part: Part | None) -> None:
        """The deadline of a part is fixed, while each byte moves the one of an idle connection."""
        if part is self._awaited_part:
            return
        self._awaited_part = part
        if self._read_deadline is not None and self._read_deadline.active():
            self._read_deadline.cancel()
        self._read_deadline = None
        if part is Part.HEAD:
            self._read_deadline = self.callLater(settings.HERMES_HEAD_SECS, self.timeoutConnection)
        elif part is Part.BODY:
            self._read_deadline = self.callLater(settings.HERMES_BODY_SECS, self.timeoutConnection)

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """In one piece: Twisted checks and counts each part of each line."""
        lines = [b"%b %b %b" % (version, code, reason)]
        for name, values in headers.getAllRawHeaders():
            for value in values:
                lines.append(b"%b: %b" % (name, value))
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n")

    def lineLengthExceeded(self, line: bytes) -> None:
        if hasattr(self, "_command"):
            self.refuse(refusals.HEADERS_TOO_LARGE)
        else:
            self.refuse(refusals.URI_TOO_LONG)

    def lineReceived(self, line: bytes) -> None:
        if self._receivedHeaderSize + len(line) > self.totalHeadersSize:
            self.lineLengthExceeded(line)
        elif line.startswith((b" ", b"\t")):
            # A folded header: a proxy in front may take it for another one.
            self.refuse(refusals.BAD_HEADER)
        else:
            self._refusal_of_fault = refusals.BAD_REQUEST_LINE
            super().lineReceived(line)

    def headerReceived(self, line: bytes) -> bool:
        if self._receivedHeaderCount >= self.maxHeaders:
            self.refuse(refusals.HEADERS_TOO_LARGE)
            return False
        self._refusal_of_fault = refusals.BAD_HEADER
        return bool(super().headerReceived(line))

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Content-Length" and data.isdigit() and len(data) > MAX_LENGTH_DIGITS:
            self.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
            return False
        if header in (b"Content-Length", b"Transfer-Encoding"):
            self._refusal_of_fault = self._refusal_of_length(header)
        if header == b"Transfer-Encoding" and self.requests[-1].requestHeaders.hasHeader(header):
            self.refuse(refusals.length_stated_twice(header.decode()))
            return False
        if header == b"Transfer-Encoding" and (
            data.lower() != b"chunked" or self._version != b"HTTP/1.1"
        ):
            self.refuse(refusals.BAD_TRANSFER_ENCODING)  # a proxy may see another end of the body
            return False
        return bool(super()._maybeChooseTransferDecoder(header, data))

    def _refusal_of_length(self, header: bytes) -> ApiError:
        if self._transferDecoder is not None:
            return refusals.length_stated_twice(header.decode())
        if header == b"Content-Length":
            return refusals.BAD_CONTENT_LENGTH
        return refusals.BAD_TRANSFER_ENCODING

    def allHeadersReceived(self) -> None:
        if self.length == 0:
            super().allHeadersReceived()
        elif self.length is not None and self.length > settings.MAX_BODY_BYTES:
            self.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
        else:
            self._admit_body()

    # -- the body's key ----------------------------------------------------------------
    def _admit_body(self) -> None:
        request: Any = self.requests[-1]
        target: Any = self._path
        head = Head(self._command, target, request.header_list())
        if head.is_trusted:
            self._read_body()
        elif head.authorization is None:
            self._read_or_refuse_body(head, missing_key())
        elif (principal := recent_principal(head)) is not None:
            request.belongs_to(principal)
            self._read_body()
        else:
            self._pause_reading()
            loop = asyncio.get_running_loop()
            self._key_check = loop.create_task(self._check_key(head), context=Context())

    async def _check_key(self, head: Head) -> None:
        found = await check_key(head)
        if isinstance(found, ApiError):
            self._read_or_refuse_body(head, found)
        else:
            self.requests[-1].belongs_to(found)
            self._read_body()
        self._resume_reading()

    def _read_or_refuse_body(self, head: Head, error: ApiError) -> None:
        if head.needs_key:
            self.refuse(head.refusal(error))
        elif self.length is not None and self.length > UNAUTHENTICATED_BODY_BYTES:
            self.refuse(refusals.UnauthenticatedBodyTooLarge(UNAUTHENTICATED_BODY_BYTES))
        else:
            self.requests[-1].belongs_to_none()
            self._read_body()

    def _read_body(self) -> None:
        """Also sends ``100 Continue`` where the client waits for it."""
        super().allHeadersReceived()

    def _pause_reading(self) -> None:
        self.paused = True
        self._networkProducer.pauseProducing()
        self.setTimeout(None)  # the client is not to blame for this pause

    def _resume_reading(self) -> None:
        if self.is_refused:
            return
        self.paused = False
        self.setTimeout(settings.HERMES_IDLE_SECS)
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()
        self.dataReceived(b"")  # what arrived together with the headers

    def rawDataReceived(self, data: bytes) -> None:
        self._refusal_of_fault = refusals.BAD_CHUNK
        super().rawDataReceived(data)

    def allContentReceived(self) -> None:
        if not self.is_refused:
            super().allContentReceived()
