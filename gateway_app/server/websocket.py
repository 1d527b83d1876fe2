"""A WebSocket connection: refused with JSON, and written to as fast as its client reads."""

import asyncio
from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from gateway_app.server.refusals import last_response
from responses_app.http.websocket_rejection import EXTENSION
from responses_app.streaming.websocket.consumer import SERVICE_RESTART

NORMAL_CLOSURE = 1000
CLOSE_SECS = 10
RESTART_CLOSE_SECS = 1  # a client that does not answer the close frame must not delay the shutdown
POLL_SECS = 0.005  # while the application has not read a message


class GatewayWebSocket(WebSocketProtocol):
    """Daphne's, with the ASGI extension by which an application rejects a handshake."""

    server: Any
    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self.is_writable = asyncio.Event()  # the connection's own, once it is known
        self._refusal: dict[str, Any] = {}
        self._poll: asyncio.TimerHandle | None = None

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        super().onClose(wasClean, code, reason)
        self.is_writable.set()
        if self._poll is not None:
            self._poll.cancel()
        # This object is in a reference cycle, and would keep half a message until it is collected.
        self.data, self.message_data, self.frame_data = b"", [], []

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.server.open_connections.discard(self.transport)
        super().connectionLost(reason)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        """Read on when the application has read this: it may wait for a client that only sends."""
        super().onMessage(payload, isBinary)
        self.transport.pauseProducing()
        if self._poll is None:
            self._resume_when_read()

    def _resume_when_read(self) -> None:
        if self.application_queue.empty():
            self._poll = None
            self.transport.resumeProducing()
        else:
            self._poll = asyncio.get_running_loop().call_later(POLL_SECS, self._resume_when_read)

    def serverClose(self, code: int | None = None) -> None:
        """Autobahn sends only 1000 and private codes; 1001 and 1012 ask the client to reconnect."""
        if code == SERVICE_RESTART:
            self.closeHandshakeTimeout = RESTART_CLOSE_SECS
        if code is None:
            code = NORMAL_CLOSURE
        self.sendCloseFrame(code=code, isReply=False)

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message["type"] == f"{EXTENSION}.start":
            self._refusal = message
        elif message["type"] == f"{EXTENSION}.body":
            self._refuse(message["body"])
        else:
            super().handle_reply(message)

    def _refuse(self, body: bytes) -> None:
        status, headers = self._refusal["status"], list(self._refusal["headers"])
        self.sendData(last_response(status, headers, body, self.server.server_name))
        self.dropConnection(abort=False)


class GatewayWebSocketFactory(WebSocketFactory):
    protocol = GatewayWebSocket

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A client that breaks the protocol gets a close frame with the reason, and time to read it.
        self.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=CLOSE_SECS)
