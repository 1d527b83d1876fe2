"""One connection: what can't be read is refused in JSON, and who does not read is dropped."""

import asyncio
import logging
import socket
import sys
from contextvars import Context
from enum import Enum, auto
from typing import Any

from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from gateway_app.server import refusals
from gateway_app.server.body_admission import Head, check_key
from gateway_app.server.limits import REFUSED_AT_ONCE, UNAUTHENTICATED_BODY_BYTES
from responses_app.http.principals import missing_key
from responses_app.protocol.errors import ApiError, BodyTooLarge

logger = logging.getLogger(__name__)

# A connection that is closed with unread bytes is reset, and the client loses the refusal: what it still
# sends is thrown away until it stops for a while, and at most so long.
LINGER_IDLE_SECS = 2
LINGER_SECS = 30
TCP_INFO_BYTES = 128
BYTES_ACKED = slice(120, 128)  # tcpi_bytes_acked
MAX_LENGTH_DIGITS = 18  # Python refuses to read numbers of thousands of digits


class Part(Enum):
    """Of a request, for which the client has a limited time."""

    HEAD = auto()
    BODY = auto()


def taken_bytes(transport: Any) -> int:
    """How much of what was written the other side has taken, as Linux counts it; elsewhere nobody tells."""
    if sys.platform != "linux" or not transport.connected:
        return 0
    told = transport.getHandle().getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return int.from_bytes(told[BYTES_ACKED], sys.byteorder)


class GatewayChannel(HTTPChannel):
    transport: Any
    _networkProducer: Any

    def __init__(self) -> None:
        super().__init__()
        self.is_refused = False
        self.is_writable = asyncio.Event()
        self.is_writable.set()
        self._write_deadline: Any = None
        self._taken_bytes = 0
        self._awaited_part: Part | None = None
        self._read_deadline: Any = None
        self._key_check: asyncio.Task[None] | None = None
        self._suspicion = (
            refusals.BAD_REQUEST_LINE
        )  # what is wrong if the step that runs now finds a fault

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
        self._clear_write_deadline()
        self._await_part(None)
        if self._key_check is not None:
            self._key_check.cancel()

    # -- writing ------------------------------------------------------------------------
    def pauseProducing(self) -> None:
        """The transport holds more than it wants to."""
        super().pauseProducing()
        self.is_writable.clear()
        self._set_write_deadline()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        if self.paused:
            self._networkProducer.pauseProducing()  # the key of the next request is being checked
        self._clear_write_deadline()

    def loseConnection(self) -> None:
        """Ends when all is written, which may be never."""
        super().loseConnection()
        self._set_write_deadline()

    def _set_write_deadline(self) -> None:
        if self._write_deadline is None:
            self._taken_bytes = taken_bytes(self.transport)
            self._write_deadline = self.callLater(
                settings.HERMES_CLIENT_WRITE_TIMEOUT, self._write_deadline_passed
            )

    def _clear_write_deadline(self) -> None:
        self.is_writable.set()
        if self._write_deadline is not None and self._write_deadline.active():
            self._write_deadline.cancel()
        self._write_deadline = None

    def _write_deadline_passed(self) -> None:
        """Who takes a little is not dropped: what waits here may be more than it can take in this time."""
        self._write_deadline = None
        if taken_bytes(self.transport) > self._taken_bytes:
            return self._set_write_deadline()
        logger.info(
            "A client has read nothing for %g s and is dropped",
            settings.HERMES_CLIENT_WRITE_TIMEOUT,
        )
        self.transport.abortConnection()

    # -- refusing -----------------------------------------------------------------------
    def refuse(self, error: ApiError) -> None:
        """Answer, and let the connection end: where the next request begins is not known."""
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
        return self.requests[-1].lower_headers() if self.requests else {}

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(self._suspicion)

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
        is_begun = hasattr(self, "_command") or self._buffer
        return Part.HEAD if is_begun else None

    def _await_part(self, part: Part | None) -> None:
        """With a deadline that no single byte moves, as it does the one of an idle connection."""
        if part is self._awaited_part:
            return
        self._awaited_part = part
        if self._read_deadline is not None and self._read_deadline.active():
            self._read_deadline.cancel()
        self._read_deadline = None
        if part is not None:
            is_head = part is Part.HEAD
            secs = settings.HERMES_HEAD_SECS if is_head else settings.HERMES_BODY_SECS
            self._read_deadline = self.callLater(secs, self.timeoutConnection)

    def lineLengthExceeded(self, line: bytes) -> None:
        has_request_line = hasattr(self, "_command")
        self.refuse(refusals.HEADERS_TOO_LARGE if has_request_line else refusals.URI_TOO_LONG)

    def lineReceived(self, line: bytes) -> None:
        if self._receivedHeaderSize + len(line) > self.totalHeadersSize:
            self.lineLengthExceeded(line)
        elif line.startswith((b" ", b"\t")):
            self.refuse(
                refusals.BAD_HEADER
            )  # a folded header, which other readers take for another one
        else:
            self._suspicion = refusals.BAD_REQUEST_LINE
            super().lineReceived(line)

    def headerReceived(self, line: bytes) -> bool:
        if self._receivedHeaderCount >= self.maxHeaders:
            self.refuse(refusals.HEADERS_TOO_LARGE)
            return False
        self._suspicion = refusals.BAD_HEADER
        return bool(super().headerReceived(line))

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Content-Length" and data.isdigit() and len(data) > MAX_LENGTH_DIGITS:
            self.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
            return False
        if header in (b"Content-Length", b"Transfer-Encoding"):
            self._suspicion = self._suspected_length(header)
        if header == b"Transfer-Encoding" and self.requests[-1].requestHeaders.hasHeader(header):
            self.refuse(refusals.length_stated_twice(header.decode()))
            return False
        if header == b"Transfer-Encoding" and (
            data.lower() != b"chunked" or self._version != b"HTTP/1.1"
        ):
            self.refuse(refusals.BAD_TRANSFER_ENCODING)  # a proxy may see another end of the body
            return False
        return bool(super()._maybeChooseTransferDecoder(header, data))

    def _suspected_length(self, header: bytes) -> ApiError:
        if self._transferDecoder is not None:
            return refusals.length_stated_twice(header.decode())
        is_length = header == b"Content-Length"
        return refusals.BAD_CONTENT_LENGTH if is_length else refusals.BAD_TRANSFER_ENCODING

    def allHeadersReceived(self) -> None:
        if self.length == 0:
            super().allHeadersReceived()
        elif self.length is not None and self.length > settings.MAX_BODY_BYTES:
            self.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
        else:
            self._admit_body()

    # -- whose body is read -------------------------------------------------------------
    def _admit_body(self) -> None:
        request: Any = self.requests[-1]
        target: Any = self._path
        head = Head(self._command, target, request.header_list())
        if head.is_trusted:
            self._read_body()
        elif head.authorization is None:
            self._read_or_refuse_body(head, missing_key())
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
        """Also asks for it, where the client waits for that."""
        super().allHeadersReceived()

    def _pause_reading(self) -> None:
        self.paused = True
        self._networkProducer.pauseProducing()
        self.setTimeout(None)  # it is not the client who takes time

    def _resume_reading(self) -> None:
        if self.is_refused:
            return
        self.paused = False
        self.setTimeout(settings.HERMES_IDLE_SECS)
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()
        self.dataReceived(b"")  # what arrived together with the headers

    def rawDataReceived(self, data: bytes) -> None:
        self._suspicion = refusals.BAD_CHUNK
        super().rawDataReceived(data)

    def allContentReceived(self) -> None:
        if not self.is_refused:
            super().allContentReceived()
