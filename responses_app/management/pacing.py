"""Commands beside a running server: short transactions, with room between them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def paced_transaction() -> Iterator[None]:
    """A transaction, and a pause as long as it took: SQLite has one writer at a time, and the server is the other."""
    with transaction.atomic():
        begun_at = time.monotonic()
        yield
    time.sleep(time.monotonic() - begun_at)
