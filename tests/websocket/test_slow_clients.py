"""A WebSocket whose client does not read costs little, and is dropped; its response is not."""

import json
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.support.checker import check_log
from tests.support.raw_http import SMALL_BUFFER, connected, is_dropped, open_sockets, resident_bytes
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.shutdowns import stop_with_signal
from tests.support.stored_rows import stored_rows

MEGABYTE = 1_000_000
FLOOD_BYTES = 100 * MEGABYTE
pytestmark = [pytest.mark.any_database, pytest.mark.fault]

LONG = " ".join(f"{number:0200d}" for number in range(10_000))
HANDSHAKE = (
    "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def text_frame(payload: bytes) -> bytes:
    """Masked, as a client's must be; the mask of zeros leaves the payload as it is."""
    return b"\x81\xff" + struct.pack(">Q", len(payload)) + bytes(4) + payload


def open_raw(server: Server, connection: socket.socket) -> None:
    connection.sendall(HANDSHAKE.format(key=server.key).encode())
    assert b" 101 " in connection.recv(SMALL_BUFFER)


def test_a_socket_that_is_not_read_is_dropped(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="1")
    with connected(server, SMALL_BUFFER) as connection:
        open_raw(server, connection)
        message = {"type": "response.create", "input": script({"say": LONG})}
        connection.sendall(text_frame(json.dumps(message).encode()))
        eventually(lambda: is_dropped(connection), 30, "the end of the connection")
    [(response_id,)] = stored_rows(server, "response", "id")
    assert text(server.ended(response_id, 60)) == LONG
    check_log(server, response_id)
    assert "Traceback" not in server.log


def test_a_client_that_only_sends_is_read_no_faster_than_it_is_answered(make_server: Callable[..., Server]) -> None:
    server = make_server()
    before = resident_bytes(server)
    frame = text_frame(json.dumps({"type": "x" * 100_000}).encode())
    with connected(server, SMALL_BUFFER) as connection:
        open_raw(server, connection)
        connection.settimeout(2)
        with pytest.raises(TimeoutError):  # the server takes nothing more
            connection.sendall(frame * (FLOOD_BYTES // len(frame)))
        assert resident_bytes(server) - before < FLOOD_BYTES / 4


def test_half_messages_go_with_their_connections(make_server: Callable[..., Server]) -> None:
    """What is freed stays with the process, and is used again."""
    server = make_server()
    sizes = [_size_with_half_messages(server) for _ in range(3)]
    assert sizes[-1] - sizes[0] < 60 * MEGABYTE, sizes


def _size_with_half_messages(server: Server) -> int:
    half = text_frame(bytes(9 * MEGABYTE))[:-1]
    with ExitStack() as stack:
        for _ in range(10):
            connection = stack.enter_context(connected(server))
            open_raw(server, connection)
            connection.sendall(half)
        size = resident_bytes(server)
    eventually(lambda: open_sockets(server) < 10, what="the end of every connection")
    return size


def test_a_client_that_does_not_close_holds_up_no_shutdown(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="20")
    with connected(server) as connection:
        open_raw(server, connection)
        assert stop_with_signal(server) < 5
