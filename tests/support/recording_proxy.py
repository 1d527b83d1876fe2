"""A proxy before a model's server that records the requests, and passes everything on as it comes.

It is one of TCP: the connections of a server that dies end for the client of the proxy too.
"""

import json
import re
import socket
import threading
from contextlib import suppress
from functools import partial
from typing import Any, Self

CHUNK_BYTES = 65536
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class RecordingProxy:
    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._received: list[bytearray] = []  # of each connection
        self.port = 0
        self.listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()

    def listen(self) -> None:
        """On the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=partial(self._accept, self._listener), daemon=True).start()

    def refuse(self) -> None:
        """New connections are refused, as by a server that is not running; others stay."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def bodies(self) -> list[dict[str, Any]]:
        """The JSON of every whole request with a body, connection by connection."""
        found = []
        for received in list(self._received):
            found += _bodies(bytes(received))
        return found

    def bodies_with(self, text: str) -> list[dict[str, Any]]:
        return [body for body in self.bodies() if text in json.dumps(body.get("messages"))]

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._upstream_port))
        received = bytearray()
        self._received.append(received)
        threading.Thread(target=partial(_pass, client, server, received), daemon=True).start()
        threading.Thread(target=partial(_pass, server, client, bytearray()), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket, received: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            received += data
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _bodies(received: bytes) -> list[dict[str, Any]]:
    found = []
    while b"\r\n\r\n" in received:
        head, received = received.split(b"\r\n\r\n", 1)
        length = LENGTH.search(head)
        if length is None:
            continue
        size = int(length[1])
        if size and len(received) >= size:
            found.append(json.loads(received[:size]))
        received = received[size:]
    return found
