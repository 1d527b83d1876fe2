"""Transactions of commands that run beside a server: short, with pauses between them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


class PacedTransactions:
    """After each transaction follows a pause that is as long as the transaction was.

    SQLite has one writer at a time: a command that writes without pauses would block the server.
    """

    def __init__(self) -> None:
        self._next_at = 0.0

    @contextmanager
    def begin(self) -> Iterator[None]:
        time.sleep(max(0.0, self._next_at - time.monotonic()))
        with transaction.atomic():
            begun_at = time.monotonic()  # the lock is held from here on
            yield
        ended_at = time.monotonic()
        self._next_at = ended_at + (ended_at - begun_at)
