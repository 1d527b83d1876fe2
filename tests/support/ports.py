"""Ports for the servers of a run: no two of its processes get the same one."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress

# Linux gives clients the ports from 32768 on: they may take the port of a server that is restarted.
FIRST, LAST = 20_000, 32_000


def free_port() -> int:
    """A port of this process's share, to listen on now, and again after a restart."""
    while True:
        port = next(_ports)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


def share(number: int, workers: int) -> Iterator[int]:
    """The ports of one worker of pytest-xdist, over and over."""
    size = (LAST - FIRST) // workers
    start = secrets.randbelow(size)  # another run may have the same share
    while True:
        for offset in range(size):
            yield FIRST + number * size + (start + offset) % size


_ports = share(
    number=int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")),
    workers=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
)
