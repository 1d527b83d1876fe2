"""Runs the statements of hot paths, whose SQL is known: Django's part of each is longer than SQLite's."""

import threading
from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

_local = threading.local()


def keep_thread_database() -> None:
    """For a thread that lives as long as its connection: ``connections`` takes longer each time."""
    _local.database = connections[DEFAULT_DB_ALIAS]


def thread_database() -> BaseDatabaseWrapper:
    """The connection of this thread."""
    kept: BaseDatabaseWrapper | None = getattr(_local, "database", None)
    if kept is None:
        return connections[DEFAULT_DB_ALIAS]
    return kept


def run_statement(
    database: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]
) -> tuple[list[Any], int]:
    """The rows that it returns, and how many it found or changed."""
    run_directly = getattr(database, "run_directly", None)  # that of the SQLite backend
    if run_directly is not None:
        ran: tuple[list[Any], int] | None = run_directly(sql, parameters)
        if ran is not None:
            return ran
    with database.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Any] = []
        if cursor.description is not None:
            rows = cursor.fetchall()
        return rows, int(cursor.rowcount)
