"""The server: Daphne's, with the connections, requests and WebSockets of this package."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from daphne.http_protocol import HTTPFactory
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory
from django.conf import settings
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from gateway_app.runtime.bootstrap import runtime
from gateway_app.runtime.roles import Role
from gateway_app.runtime.signals import handle_signals
from gateway_app.server.channel import GatewayChannel
from gateway_app.server.limits import ByteBudget, OpenConnections
from gateway_app.server.prompt_transport import PromptTransport
from gateway_app.server.request import CUT_SECS, GatewayRequest
from gateway_app.server.websocket import GatewayWebSocket, GatewayWebSocketFactory
from responses_app.http.websocket_rejection import EXTENSION
from responses_app.streaming.base import CHECKED_PRINCIPAL, CUTS, PROMPT_WRITES

LISTEN_BACKLOG = 2048  # Daphne's 50 stalls a burst of connections
PIECE_BYTES = 64 * 1024  # the buffer of Twisted's transport


class GatewayFactory(HTTPFactory):
    # It replaces a proxy that serves HTTP/2 over TLS as well.
    protocol = GatewayChannel  # type: ignore[assignment]

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.timeOut = settings.HERMES_IDLE_SECS
        self.unauthenticated = ByteBudget(settings.HERMES_UNAUTHENTICATED_BYTES)

    def startFactory(self) -> None:
        """Twisted's access log would be formatted for each request, and goes nowhere here."""

    def buildProtocol(self, addr: Any) -> Any:
        channel = super().buildProtocol(addr)
        channel.requestFactory = GatewayRequest
        return channel


class GatewayServer(Server):
    """Starts the runner with the server, and lets ``send`` wait until the client reads."""

    on_listening: Callable[[], None]
    listen_failure = ""
    role: Role | None = None  # that of a web process, by the settings

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ports: list[Any] = []
        self.open_connections = OpenConnections(settings.HERMES_MAX_CONNECTIONS)

    @property
    def http_factory(self) -> GatewayFactory:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, made_by_daphne: HTTPFactory) -> None:
        """Daphne's ``run`` assigns a factory of a fixed class; this replaces it."""
        self._http_factory = GatewayFactory(self)

    @property
    def ws_factory(self) -> GatewayWebSocketFactory:
        return self._ws_factory

    @ws_factory.setter
    def ws_factory(self, made_by_daphne: WebSocketFactory) -> None:
        self._ws_factory = GatewayWebSocketFactory(self, server=self.server_name)

    def run(self) -> None:
        loop = reactor._asyncioEventloop
        asyncio.set_event_loop(loop)
        loop.call_soon(runtime.ensure_started, self.role)
        self.signal_handlers = False  # Twisted's would take a second signal for the first
        handle_signals(reactor.stop)  # type: ignore[misc]
        super().run()

    def kill_all_applications(self) -> Deferred[None]:
        """The reactor calls this before it stops, and waits for the result while the loop runs."""
        for port in self._ports:
            port.stopListening()
        return Deferred.fromFuture(asyncio.ensure_future(_drain()))

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if isinstance(protocol, GatewayWebSocket):
            scope["extensions"] = {EXTENSION: {}}
        else:
            scope["extensions"] = {CUTS: {}}
        if isinstance(protocol, GatewayRequest):
            writes = {"is_ready": protocol.is_ready_for_piece, "write": protocol.write_piece}
            scope["extensions"][PROMPT_WRITES] = writes
        if isinstance(protocol, GatewayRequest) and protocol.fresh_principal is not None:
            scope[CHECKED_PRINCIPAL] = protocol.fresh_principal
        input_queue = super().create_application(protocol, scope)
        if isinstance(protocol, GatewayRequest) and input_queue is not None:
            application = self.connections[protocol]["application_instance"]
            application.add_done_callback(protocol.application_ended)
        return input_queue

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """The application's ``send``: it waits while the client does not read."""
        if isinstance(protocol, GatewayRequest):
            if is_piece(message):
                if not protocol.is_writable.is_set():
                    await protocol.is_writable.wait()
                protocol.write_piece(message["body"])
                return
            for piece in pieces(message):
                await protocol.is_writable.wait()
                await super().handle_reply(protocol, piece)
        else:
            await protocol.is_writable.wait()
            await super().handle_reply(protocol, message)

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        port.transport = PromptTransport
        self._ports.append(port)
        self.on_listening()

    def listen_error(self, failure: Any) -> None:
        self.listen_failure = failure.getErrorMessage()
        self.stop()


async def _drain() -> None:
    await runtime.drain()
    await asyncio.sleep(2 * CUT_SECS)  # the readers' connections are cut on this loop


def is_piece(message: dict[str, Any]) -> bool:
    """A part of a stream, which is the most frequent message, and short."""
    return bool(message.get("more_body")) and 0 < len(message["body"]) <= PIECE_BYTES


def pieces(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A long body in several messages: only one of them waits in a buffer, and progress shows."""
    body = message.get("body", b"")
    if len(body) <= PIECE_BYTES:
        yield message
        return
    last = (len(body) - 1) // PIECE_BYTES * PIECE_BYTES
    for start in range(0, last, PIECE_BYTES):
        yield message | {"body": body[start : start + PIECE_BYTES], "more_body": True}
    yield message | {"body": body[last:]}


def endpoint(host: str, port: int) -> str:
    interface = host.replace(":", "\\:")
    return f"tcp:port={port}:interface={interface}:backlog={LISTEN_BACKLOG}"
