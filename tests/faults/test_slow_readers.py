"""A client that does not read costs the server little, and is dropped; its response is not."""

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.support.checker import check_log
from tests.support.misbehaving_app import CHUNK_BYTES, FLOOD_CHUNKS
from tests.support.raw_http import (
    SMALL_BUFFER,
    connected,
    is_dropped,
    open_sockets,
    read_all,
    resident_bytes,
)
from tests.support.server import (
    Server,
    created_id,
    eventually,
    script,
    text,
)

pytestmark = pytest.mark.any_database

FLOOD_BYTES = FLOOD_CHUNKS * CHUNK_BYTES
UNRULY = {"TEST_ASGI_APPLICATION": "tests.support.misbehaving_app.application"}
GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n"


def flooded_bytes(server: Server) -> int:
    try:
        return int((server.home / "flood").read_text() or 0)
    except FileNotFoundError:
        return 0


def test_the_application_waits_for_the_reader(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="3", **UNRULY)
    before = resident_bytes(server)
    with connected(server, SMALL_BUFFER) as connection:
        connection.sendall(GET % (b"flood", b"keep-alive"))
        eventually(lambda: flooded_bytes(server), what="the flood")
        sizes: list[int] = []
        flooded: list[int] = []  # while the connection was there; behind its end nothing holds the flood

        def look() -> bool:
            sizes.append(resident_bytes(server))
            sent = flooded_bytes(server)
            if is_dropped(connection):
                return True
            flooded.append(sent)
            return False

        eventually(look, what="the end of the connection")
    assert max(sizes) - before < FLOOD_BYTES / 10
    assert flooded[-1] < FLOOD_BYTES / 5


@pytest.mark.parametrize("connection_header", [b"keep-alive", b"close"])
def test_an_answer_in_one_message_is_dropped_too(make_server: Callable[..., Server], connection_header: bytes) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="1", **UNRULY)
    with connected(server, SMALL_BUFFER) as connection:
        connection.sendall(GET % (b"bytes/%d" % FLOOD_BYTES, connection_header))
        eventually(lambda: is_dropped(connection), what="the end of the connection")


def test_a_close_does_not_wait_for_ever_for_the_last_bytes(make_server: Callable[..., Server]) -> None:
    """Of many sizes, one is a little more than the kernel takes: then only the close is left to wait."""
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="1", **UNRULY)
    before = open_sockets(server)
    with ExitStack() as stack:
        for size in range(2_000_000, 2_200_000, 4_000):
            connection = stack.enter_context(connected(server, SMALL_BUFFER))
            connection.sendall(GET % (b"bytes/%d" % size, b"close"))
            connection.recv(100)
        eventually(lambda: open_sockets(server) <= before, timeout_secs=60, what="the end of every connection")


def test_a_fast_reader_gets_all_of_it(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="1", **UNRULY)
    for path in (b"flood", b"bytes/%d" % FLOOD_BYTES):
        with connected(server) as connection:
            connection.sendall(GET % (path, b"close"))
            received = read_all(connection)
        assert len(received) > FLOOD_BYTES
        assert received.endswith(b"0\r\n\r\n")


def read_slowly(connection: socket.socket, size: int, secs: float = 6) -> None:
    slow_until = time.monotonic() + secs
    while time.monotonic() < slow_until:
        assert connection.recv(size)
        time.sleep(0.1)  # the reader's own pace is what is tested


def test_a_slow_reader_is_not_a_stuck_one(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="2", **UNRULY)
    with connected(server) as connection:
        connection.sendall(GET % (b"flood", b"close"))
        read_slowly(connection, 16_384)
        assert not is_dropped(connection)
        assert read_all(connection).endswith(b"0\r\n\r\n")


def test_who_takes_a_little_is_not_dropped(make_server: Callable[..., Server]) -> None:
    """Far less, in that time, than what waits for it in the server's buffer."""
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="2", **UNRULY)
    with connected(server, SMALL_BUFFER) as connection:
        connection.sendall(GET % (b"flood", b"close"))
        read_slowly(connection, 500)
        assert not is_dropped(connection)
        eventually(lambda: is_dropped(connection), what="the end of the connection, once nothing is taken")


@pytest.mark.fault
def test_a_response_ends_well_without_its_stuck_reader(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CLIENT_WRITE_TIMEOUT="1")
    words = " ".join(f"{number:0200d}" for number in range(10_000))
    asked = script({"say": words})
    with connected(server, SMALL_BUFFER) as connection:
        response_id = _ask_for_a_stream(server, connection, asked)
        eventually(lambda: is_dropped(connection), 30, "the end of the connection")
    assert text(server.ended(response_id)) == words
    check_log(server, response_id)


def _ask_for_a_stream(server: Server, connection: socket.socket, asked: str) -> str:
    """Read no more than the first event."""
    body = json.dumps({"input": asked, "stream": True}).encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    received = b""
    while b"\n\nevent: " not in received:
        received += connection.recv(4096)
    first = received[received.index(b"event: ") :].split(b"\n\n")[0]
    return created_id(first + b"\n\n")
