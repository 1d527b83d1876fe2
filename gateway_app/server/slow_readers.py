"""The writing side of a connection: a client that reads nothing is dropped."""

import asyncio
import logging
import socket
import sys
from typing import Any

from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

logger = logging.getLogger(__name__)

TCP_INFO_BYTES = 128
BYTES_ACKED = slice(120, 128)  # tcpi_bytes_acked


def acknowledged_bytes(transport: Any) -> int:
    """How many of the written bytes the client's machine has received; always 0 outside Linux."""
    if sys.platform != "linux" or not transport.connected:
        return 0
    info = transport.getHandle().getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return int.from_bytes(info[BYTES_ACKED], sys.byteorder)


class WriteLimitedChannel(HTTPChannel):
    """Sets ``is_writable`` while the transport has room, and a deadline while it has none."""

    transport: Any
    _networkProducer: Any

    def __init__(self) -> None:
        super().__init__()
        self.is_writable = asyncio.Event()
        self.is_writable.set()
        self._write_deadline: Any = None
        self._acknowledged_bytes = 0

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(reason)
        self._clear_write_deadline()

    def pauseProducing(self) -> None:
        """The transport's buffer is full."""
        super().pauseProducing()
        self.is_writable.clear()
        self._set_write_deadline()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        if self.paused:
            self._networkProducer.pauseProducing()  # the key of the next request is being checked
        self._clear_write_deadline()

    def loseConnection(self) -> None:
        """The connection ends when all is written, which may be never."""
        super().loseConnection()
        self._set_write_deadline()

    def _set_write_deadline(self) -> None:
        if self._write_deadline is None:
            self._acknowledged_bytes = acknowledged_bytes(self.transport)
            self._write_deadline = self.callLater(
                settings.HERMES_CLIENT_WRITE_TIMEOUT, self._write_deadline_passed
            )

    def _clear_write_deadline(self) -> None:
        self.is_writable.set()
        if self._write_deadline is not None and self._write_deadline.active():
            self._write_deadline.cancel()
        self._write_deadline = None

    def _write_deadline_passed(self) -> None:
        """A slow client is not dropped: more may be buffered than it can read in this time."""
        self._write_deadline = None
        if acknowledged_bytes(self.transport) > self._acknowledged_bytes:
            self._set_write_deadline()
            return
        logger.info(
            "A client has read nothing for %g s and is dropped",
            settings.HERMES_CLIENT_WRITE_TIMEOUT,
        )
        self.transport.abortConnection()
