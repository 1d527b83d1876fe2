"""How the threads of a server use the database; on SQLite there is nothing to limit."""

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS


def limit_waits(*, is_pooled: bool = False, may_probe: bool = False) -> None:
    """This thread waits ``HERMES_DATABASE_TIMEOUT`` for each answer.

    With ``is_pooled`` it shares connections with other threads. With ``may_probe`` it also tries
    during an outage, in which other threads fail at once.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor == "postgresql":
        wrapper.limit_waits(is_pooled=is_pooled, may_probe=may_probe)  # type: ignore[attr-defined]


def release_connection() -> None:
    """Before a request waits for something else: other requests may use its connection."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    if getattr(wrapper, "is_pooled", False):
        wrapper.close()
