"""Queries for monitors: the database answers within two seconds, or counts as unavailable."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import Error

from responses_app.eventlog.availability import run_query
from responses_app.postgresql.threads import limit_waits
from responses_app.protocol.errors import StorageUnavailable

T = TypeVar("T")

PROBE_SECS = 2.0  # a monitor that waits much longer takes the server for dead
TROUBLE = (Error, StorageUnavailable)

# A database that hangs ties up one thread and one connection, however many monitors ask.
_thread = ThreadPoolExecutor(1, thread_name_prefix="database-probe", initializer=limit_waits)


def ask(query: Callable[[], T]) -> T:
    """Raises one of ``TROUBLE`` when the database is unavailable or does not answer in time."""
    asked = _thread.submit(run_query, query)
    try:
        return asked.result(PROBE_SECS)
    except TimeoutError:
        asked.cancel()
        raise StorageUnavailable(f"the database has not answered for {PROBE_SECS:g} s") from None
