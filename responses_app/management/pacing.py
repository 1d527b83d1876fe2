"""Commands beside a running server: short transactions, with room between them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


class PacedTransactions:
    """Each begins no sooner than as long after the last one as that took.

    SQLite has one writer at a time: without a pause, a command that writes in a loop shuts the server out.
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
