"""The socket of a connection: what is written is sent at once."""

from typing import Any

from twisted.internet import tcp


class PromptTransport(tcp.Server):
    """Sends what the socket takes, and waits for the event loop only with the rest.

    Twisted waits for each write: the event loop watches the socket, reports it, and forgets it
    again, which costs more than the write itself. A stream writes each of its words.
    """

    producerPaused: bool
    _tempDataBuffer: list[bytes]
    _is_waiting = False  # the event loop watches the socket

    _is_held = False
    _wants_to_write = False

    def hold(self) -> None:
        """What is written from here on is sent together, by ``release``."""
        self._is_held = True

    def release(self) -> None:
        self._is_held = False
        if self._wants_to_write:
            self._wants_to_write = False
            self.startWriting()

    def startWriting(self) -> None:
        if self._is_held:
            self._wants_to_write = True
            return
        if self._is_waiting:
            return
        if not self._may_send() or not self._send():
            self._is_waiting = True
            super().startWriting()

    def stopWriting(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            super().stopWriting()

    @property
    def sends_at_once(self) -> bool:
        """Nothing waits to be sent, and nothing keeps what comes next from it."""
        is_waiting = self._is_held or self._is_waiting or bool(self._tempDataBuffer)
        is_ending = self.disconnecting or self._writeDisconnecting or not self.connected
        return not (is_waiting or is_ending or self.producerPaused)

    def send_at_once(self, data: bytes) -> None:
        """``write`` without Twisted's buffers, which keep only what the socket does not take."""
        sent: Any = self.writeSomeData(data)
        if isinstance(sent, Exception):
            self.write(data)  # the event loop finds the same error, and ends the connection
        elif sent < len(data):
            self.write(data[sent:])

    def _may_send(self) -> bool:
        """The end of a connection and of a pause is Twisted's."""
        is_ending = self.disconnecting or self._writeDisconnecting
        return bool(self._tempDataBuffer) and not is_ending and not self.producerPaused

    def _send(self) -> bool:
        """Whether everything is sent; what is left stays in the buffer."""
        data = b"".join(self._tempDataBuffer)
        sent: Any = self.writeSomeData(data)
        if isinstance(sent, Exception):
            return False  # the event loop finds the same error, and ends the connection
        self._tempDataBuffer = []
        self._tempDataLen = 0
        if sent < len(data):
            self.dataBuffer = data
            self.offset = sent
            return False
        return True
