"""A WebSocket whose client does not read costs little, and is dropped; its response is not."""

import json
import socket
import struct
from collections.abc import Callable

import pytest

from tests.checker import check_log
from tests.harness import Server, eventually, script, text
from tests.raw_http import connected
from tests.test_slow_readers import SMALL_BUFFER, is_dropped

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
    [(response_id,)] = server.query("SELECT id FROM responses_app_response")
    assert text(server.ended(response_id, 60)) == LONG
    check_log(server, response_id)
    assert "Traceback" not in server.log
