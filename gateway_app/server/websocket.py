"""A WebSocket connection: refused in JSON, and written to only as fast as its client reads."""

import asyncio
from http import HTTPStatus
from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from responses_app.http.websocket_rejection import EXTENSION
from responses_app.streaming.websocket.consumer import SERVICE_RESTART

CLOSE_SECS = 10
RESTART_CLOSE_SECS = (
    1  # whoever does not answer our farewell does not hold up the end of the process
)
TAKE_SECS = 0.005  # between looks whether the application has taken what a client sent


class GatewayWebSocket(WebSocketProtocol):
    """Daphne's, with the ASGI extension that lets an application refuse a handshake in its own words."""

    server: Any
    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self.is_writable = asyncio.Event()  # the connection's own, once it is known
        self._refusal: dict[str, Any] = {}
        self._look: asyncio.TimerHandle | None = None

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        super().onClose(wasClean, code, reason)
        self.is_writable.set()
        if self._look is not None:
            self._look.cancel()
        # Half a message would stay for as long as this object does, which is in a cycle.
        self.data, self.message_data, self.frame_data = b"", [], []

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.server.open_connections.discard(self.transport)
        super().connectionLost(reason)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        """Read on when this is taken: the application may wait for a client that sends and reads no answers."""
        super().onMessage(payload, isBinary)
        self.transport.pauseProducing()
        if self._look is None:
            self._read_on_when_taken()

    def _read_on_when_taken(self) -> None:
        if self.application_queue.empty():
            self._look = None
            self.transport.resumeProducing()
        else:
            self._look = asyncio.get_running_loop().call_later(TAKE_SECS, self._read_on_when_taken)

    def serverClose(self, code: int | None = None) -> None:
        """Autobahn's own way out knows only 1000 and private codes, but 1001 and 1012 mean: come again."""
        if code == SERVICE_RESTART:
            self.closeHandshakeTimeout = RESTART_CLOSE_SECS
        self.sendCloseFrame(code=1000 if code is None else code, isReply=False)

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message["type"] == f"{EXTENSION}.start":
            self._refusal = message
        elif message["type"] == f"{EXTENSION}.body":
            self._refuse(message["body"])
        else:
            super().handle_reply(message)

    def _refuse(self, body: bytes) -> None:
        status = self._refusal["status"]
        headers = [
            *self._refusal["headers"],
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (b"server", self.server.server_name.encode()),
        ]
        head = b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode())
        self.sendData(head + b"".join(b"%s: %s\r\n" % pair for pair in headers) + b"\r\n" + body)
        self.dropConnection(abort=False)


class GatewayWebSocketFactory(WebSocketFactory):
    protocol = GatewayWebSocket

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Who breaks a rule is told which, and has the time to read it behind what it was still sending.
        self.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=CLOSE_SECS)
