"""Transactions of commands that may run beside a server: short, with pauses between them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

# An idle server writes a heartbeat every two seconds, unless its leases are very long.
ALONE_SECS = 5.0


class PacedTransactions:
    """After each transaction follows a pause that is as long as the transaction was.

    SQLite has one writer at a time: a command that writes without pauses would block the server.
    There is no pause once no other program has written for a while, and none on PostgreSQL.
    """

    def __init__(self) -> None:
        self._next_at = 0.0
        self._seen_version: int | None = None
        self._paced_until = time.monotonic() + ALONE_SECS

    @contextmanager
    def begin(self) -> Iterator[None]:
        if self._has_neighbour():
            time.sleep(max(0.0, self._next_at - time.monotonic()))
        with transaction.atomic():
            begun_at = time.monotonic()  # the lock is held from here on
            yield
        ended_at = time.monotonic()
        self._next_at = ended_at + (ended_at - begun_at)

    def _has_neighbour(self) -> bool:
        """Whether another program may be writing. SQLite counts the commits of others."""
        if connection.vendor != "sqlite":
            return False
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version: int = cursor.fetchone()[0]
        if version != self._seen_version:
            self._seen_version = version
            self._paced_until = time.monotonic() + ALONE_SECS
        return time.monotonic() < self._paced_until
