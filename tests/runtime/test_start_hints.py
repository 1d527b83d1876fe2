"""A burst of requests: each starts by its hint, not by a sweep."""

import json
import socket
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from tests.support.server import Server, eventually, script
from tests.support.stored_rows import count_rows

BURST = 160  # the channel holds 100 hints
SLOTS = 32


@pytest.mark.any_database
def test_a_burst_starts_without_any_sweep(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SWEEP_SECS="60", HERMES_MAX_CONCURRENT=str(SLOTS))
    body = json.dumps({"input": script({"say": "x"}), "background": True}).encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with ExitStack() as stack:
        with closing(sqlite3.connect(server.home / "hermes.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # all of them are admitted in few commits
            clients = [stack.enter_context(_client(server)) for _ in range(BURST)]
            for client in clients:
                client.sendall(head.encode() + body)
            with server.http() as last:
                assert last.get("/health").status_code == 200  # behind all of them
            other.execute("ROLLBACK")
        for client in clients:
            assert client.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    eventually(lambda: count_rows(server, "response", status="completed") == BURST, 45, f"the end of all {BURST}")
    assert "the sweep will find" not in server.log


def _client(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)
