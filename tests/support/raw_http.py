"""Requests no client library would send, byte for byte, and the answers to them."""

import http.client
import json
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import Server

ANSWER_SECS = 20
HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n"
FORM_HEAD = b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\n"  # needs no key


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def error(self) -> dict[str, Any]:
        """What every refusal has: OpenAI's shape, and the headers of any other answer."""
        assert self.headers["content-type"] == "application/json", self
        assert self.headers["x-request-id"]
        assert self.headers["x-content-type-options"] == "nosniff"
        assert self.headers["referrer-policy"] == "no-referrer"
        error: dict[str, Any] = json.loads(self.body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"]
        return error


def authorized_head(server: Server) -> bytes:
    return HEAD + b"Authorization: Bearer %s\r\n" % server.key.encode()


@contextmanager
def connected(server: Server, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(ANSWER_SECS)
        connection.connect(("127.0.0.1", server.port))
        yield connection


def read_answer(connection: socket.socket) -> Answer:
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def exchange(server: Server, request: bytes) -> Answer:
    with connected(server) as connection:
        connection.sendall(request)
        return read_answer(connection)


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def resident_bytes(server: Server) -> int:
    assert server.process is not None
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def open_files(server: Server) -> list[str]:
    assert server.process is not None
    return list(_link_targets(Path(f"/proc/{server.process.pid}/fd")))


def _link_targets(folder: Path) -> Iterator[str]:
    for link in folder.iterdir():
        with suppress(FileNotFoundError):  # the server has closed it since the folder was read
            yield os.readlink(link)


def open_sockets(server: Server) -> int:
    return sum(path.startswith("socket:") for path in open_files(server))


SMALL_BUFFER = 4096


def is_dropped(connection: socket.socket) -> bool:
    """The reset is seen without reading: what came before it is still there to be read."""
    poll = select.poll()
    poll.register(connection, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
