"""One connection: what can't be read is refused in JSON, and who does not read is dropped."""

import asyncio
import logging
import socket
import sys
from typing import Any

from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from gateway_app.server import refusals
from responses_app.errors import ApiError, BodyTooLarge

logger = logging.getLogger(__name__)

# A connection that is closed with unread bytes is reset, and the client loses the refusal: what it still
# sends is thrown away until it stops for a while, and at most so long.
LINGER_IDLE_SECS = 2
LINGER_SECS = 30
TCP_INFO_BYTES = 128
BYTES_ACKED = slice(120, 128)  # tcpi_bytes_acked
MAX_LENGTH_DIGITS = 18  # Python refuses to read numbers of thousands of digits


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
        self._suspicion = refusals.BAD_REQUEST_LINE  # what is wrong if the step that runs now finds a fault

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(reason)
        self._clear_write_deadline()

    # -- writing ------------------------------------------------------------------------
    def pauseProducing(self) -> None:
        """The transport holds more than it wants to."""
        super().pauseProducing()
        self.is_writable.clear()
        self._set_write_deadline()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        self._clear_write_deadline()

    def loseConnection(self) -> None:
        """Ends when all is written, which may be never."""
        super().loseConnection()
        self._set_write_deadline()

    def _set_write_deadline(self) -> None:
        if self._write_deadline is None:
            self._taken_bytes = taken_bytes(self.transport)
            self._write_deadline = self.callLater(settings.HERMES_CLIENT_WRITE_TIMEOUT, self._write_deadline_passed)

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
        logger.info("A client has read nothing for %g s and is dropped", settings.HERMES_CLIENT_WRITE_TIMEOUT)
        self.transport.abortConnection()

    # -- refusing -----------------------------------------------------------------------
    def refuse(self, error: ApiError) -> None:
        """Answer, and let the connection end: where the next request begins is not known."""
        if self.is_refused:
            return
        self.is_refused = True
        self.clearLineBuffer()
        self.transport.write(refusals.as_http(error, self._received_headers(), self.factory.server.server_name))
        self._networkProducer.unregisterProducer()
        self._networkProducer.resumeProducing()
        self.transport.loseWriteConnection()
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

    def lineLengthExceeded(self, line: bytes) -> None:
        has_request_line = hasattr(self, "_command")
        self.refuse(refusals.HEADERS_TOO_LARGE if has_request_line else refusals.URI_TOO_LONG)

    def lineReceived(self, line: bytes) -> None:
        if self._receivedHeaderSize + len(line) > self.totalHeadersSize:
            self.lineLengthExceeded(line)
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
        return bool(super()._maybeChooseTransferDecoder(header, data))

    def _suspected_length(self, header: bytes) -> ApiError:
        if self._transferDecoder is not None:
            return refusals.length_stated_twice(header.decode())
        is_length = header == b"Content-Length"
        return refusals.BAD_CONTENT_LENGTH if is_length else refusals.BAD_TRANSFER_ENCODING

    def allHeadersReceived(self) -> None:
        if self.length is not None and self.length > settings.MAX_BODY_BYTES:
            self.refuse(BodyTooLarge(settings.MAX_BODY_BYTES))
        else:
            super().allHeadersReceived()

    def rawDataReceived(self, data: bytes) -> None:
        self._suspicion = refusals.BAD_CHUNK
        super().rawDataReceived(data)

    def allContentReceived(self) -> None:
        if not self.is_refused:
            super().allContentReceived()
