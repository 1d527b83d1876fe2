"""How the threads of a server use the database; on SQLite there is nothing to limit."""

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS


def limit_waits(
    *, is_pooled: bool = False, may_probe: bool = False, lock_wait_secs: float | None = None
) -> bool:
    """This thread waits ``HERMES_DATABASE_TIMEOUT`` for each answer.

    With ``is_pooled`` it shares connections with other threads. With ``may_probe`` it also tries
    during an outage, in which other threads fail at once. With ``lock_wait_secs`` every statement
    waits so long for a locked row, unless a pooler shares the connection: returns whether it does.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor != "postgresql":
        return False
    wrapper.limit_waits(  # type: ignore[attr-defined]
        is_pooled=is_pooled, may_probe=may_probe, lock_wait_secs=lock_wait_secs
    )
    return wrapper.lock_wait_secs is not None  # type: ignore[attr-defined]


def release_connection() -> None:
    """Before a request waits for something else: other requests may use its connection."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    if getattr(wrapper, "is_pooled", False):
        wrapper.close()
