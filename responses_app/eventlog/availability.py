"""A database that is away or a row that is locked: how long to wait, and whether a broken COMMIT was carried out."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django.db import DatabaseError, connection
from django.db.utils import InterfaceError, OperationalError

from responses_app.protocol.errors import StorageUnavailable

T = TypeVar("T")

AWAY = (
    OperationalError,
    InterfaceError,
)  # the connection, the server or the disk; not the statement
LOCK_CONFLICTS = ("55P03", "40P01")  # PostgreSQL's lock timeout and deadlock


def unavailable(error: Exception) -> StorageUnavailable:
    return StorageUnavailable(str(error).strip())


def run_query(query: Callable[..., T], *args: Any) -> T:
    """In a thread that keeps its connection. One that broke while it was idle is replaced."""
    for is_last_try in (False, True):
        connection.close_if_unusable_or_obsolete()
        try:
            connection.ensure_connection()
            connection.close_at = (
                None  # the thread lives long, and opening costs more than most queries
            )
            return query(*args)
        except AWAY as error:
            if is_last_try or connection.is_usable():
                raise unavailable(error) from error
            connection.close()
    raise AssertionError("the last try returns or raises")


def wait_for_locks(secs: float) -> None:
    """How long this connection waits for another writer of an SQLite file; PostgreSQL locks rows, and few."""
    if connection.vendor == "sqlite":
        with suppress(*AWAY), connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {round(1000 * secs)}")


def limit_lock_waits(secs: float) -> None:
    """For the rest of this transaction, which is all that a pooler in transaction mode keeps."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {round(1000 * secs)}")


def is_lock_conflict(error: Exception) -> bool:
    """Another session has the row; the connection and the transaction before the savepoint are sound."""
    return getattr(error.__cause__, "sqlstate", None) in LOCK_CONFLICTS


def take_receipt() -> int | None:
    """Inside the transaction; None where nothing was written, and where a COMMIT that fails has stored nothing."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT txid_current_if_assigned()")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]


def was_committed(receipt: int) -> bool | None:
    """None when nobody can tell yet."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT txid_status(%s)", [receipt])
            status = cursor.fetchone()[0]
    except AWAY:
        connection.close()
        return None
    except (
        DatabaseError
    ):  # a number this server has not come to: another took its place, without the transaction
        return False
    return None if status == "in progress" else status == "committed"
