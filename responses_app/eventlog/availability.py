"""Outages and locked rows: how long to wait, and whether a broken COMMIT was carried out."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django.db import DatabaseError, connection
from django.db.utils import InterfaceError, OperationalError

from responses_app.postgresql.limits import transaction_statement
from responses_app.protocol.errors import StorageUnavailable

T = TypeVar("T")

# The connection, the server or the disk; not the statement.
OUTAGE_ERRORS = (OperationalError, InterfaceError)
LOCK_CONFLICTS = ("55P03", "40P01")  # PostgreSQL's lock timeout and deadlock


def unavailable(error: Exception) -> StorageUnavailable:
    return StorageUnavailable(str(error).strip())


def run_query(query: Callable[..., T], *args: Any) -> T:
    """In a thread that keeps its connection. One that broke while it was idle is replaced."""
    for is_last_try in (False, True):
        connection.close_if_unusable_or_obsolete()
        try:
            connection.ensure_connection()
            # The thread lives long, and opening a connection costs more than most queries.
            connection.close_at = None
            with connection.wrap_database_errors:  # Django closes its cursors without it
                return query(*args)
        except OUTAGE_ERRORS as error:
            if is_last_try or connection.is_usable():
                raise unavailable(error) from error
            connection.close()
    raise AssertionError("the last try returns or raises")


def wait_for_locks(secs: float) -> None:
    """Set how long this connection waits for another writer of an SQLite file."""
    if connection.vendor == "sqlite":
        with suppress(*OUTAGE_ERRORS), connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {round(1000 * secs)}")


def limit_lock_waits(secs: float) -> None:
    """Set how long the rest of this PostgreSQL transaction waits for a locked row."""
    is_limited = getattr(connection, "lock_wait_secs", None) == secs  # by the session
    if connection.vendor == "postgresql" and not is_limited:
        with connection.cursor() as cursor:
            cursor.execute(transaction_statement(secs))


def is_lock_conflict(error: Exception) -> bool:
    """Another session has locked the row; the transaction before the savepoint can go on."""
    return getattr(error.__cause__, "sqlstate", None) in LOCK_CONFLICTS


def current_transaction_id() -> int | None:
    """The id by which ``was_committed`` finds this transaction.

    None where nothing was written. SQLite needs none: a COMMIT that fails has stored nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT txid_current_if_assigned()")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]


def was_committed(transaction_id: int) -> bool | None:
    """Whether a transaction was committed; None while that is not known yet."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_is_in_recovery()")
            is_standby = cursor.fetchone()[0]
            if is_standby:  # which may be behind: only the server that took the write knows
                connection.close()
                return None
            cursor.execute("SELECT txid_status(%s)", [transaction_id])
            status = cursor.fetchone()[0]
    except OUTAGE_ERRORS:
        connection.close()
        return None
    except DatabaseError:
        # This server has not reached that id: it replaced the other one, without the transaction.
        return False
    if status == "in progress":
        return None
    return bool(status == "committed")
