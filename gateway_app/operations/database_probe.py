"""Questions of monitors to the database: answered soon, or not at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import Error

from responses_app.eventlog.availability import run_query
from responses_app.postgresql.threads import limit_waits
from responses_app.protocol.errors import StorageUnavailable

T = TypeVar("T")

PROBE_SECS = 2.0  # a monitor waits little longer before it takes the server for dead
TROUBLE = (Error, StorageUnavailable)

# However many monitors ask a database that hangs, one thread and one connection are tied up.
_thread = ThreadPoolExecutor(1, thread_name_prefix="database-probe", initializer=limit_waits)


def ask(query: Callable[[], T]) -> T:
    """Raises one of ``TROUBLE`` when the database is away or does not answer in time."""
    asked = _thread.submit(run_query, query)
    try:
        return asked.result(PROBE_SECS)
    except TimeoutError:
        asked.cancel()
        raise StorageUnavailable(f"the database has not answered for {PROBE_SECS:g} s") from None
