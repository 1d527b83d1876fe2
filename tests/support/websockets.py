"""A raw WebSocket client, as strict as the protocol."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.server import Server

PATIENCE_SECS = 20
ENDS = ("response.completed", "response.failed", "response.incomplete", "error")


class Socket:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def send(self, **message: Any) -> None:
        self.connection.send(json.dumps(message))

    def create(self, **body: Any) -> None:
        self.send(type="response.create", **body)

    def receive(self) -> dict[str, Any]:
        received: dict[str, Any] = json.loads(self.connection.recv(PATIENCE_SECS))
        return received

    def turn(self) -> list[dict[str, Any]]:
        """The events up to the end of a turn."""
        found = [self.receive()]
        while found[-1]["type"] not in ENDS:
            found.append(self.receive())
        return found

    def ask(self, **body: Any) -> dict[str, Any]:
        """One whole turn; its last event."""
        self.create(**body)
        return self.turn()[-1]


@contextmanager
def socket(server: Server, key: str | None = None, path: str = "/v1/responses", **headers: str) -> Iterator[Socket]:
    url = server.url.replace("http://", "ws://") + path
    sent = {"Authorization": f"Bearer {key or server.key}", **{n.replace("_", "-"): v for n, v in headers.items()}}
    with connect(url, additional_headers=sent, max_size=None, open_timeout=PATIENCE_SECS) as connection:
        yield Socket(connection)
