"""Daphne with what this project needs around it."""

from collections.abc import Callable
from typing import Any

from daphne.server import Server
from twisted.internet import reactor

from gateway_app.runtime.start import runtime

LISTEN_BACKLOG = 2048  # Daphne's 50 stalls a burst of connections


class GatewayServer(Server):
    """Starts the runner with the server, not with the first request."""

    on_listening: Callable[[], None]
    listen_failure = ""

    def run(self) -> None:
        reactor._asyncioEventloop.call_soon(runtime.ensure_started)
        reactor.addSystemEventTrigger("after", "shutdown", runtime.stop)  # type: ignore[arg-type]
        super().run()

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        self.on_listening()

    def listen_error(self, failure: Any) -> None:
        self.listen_failure = failure.getErrorMessage()
        self.stop()


def endpoint(host: str, port: int) -> str:
    interface = host.replace(":", "\\:")
    return f"tcp:port={port}:interface={interface}:backlog={LISTEN_BACKLOG}"
