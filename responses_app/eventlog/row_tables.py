"""Rows of values as a table in a statement, for inserts and joins of any number of rows.

PostgreSQL gets an array for each column: the statement is the same for every number of rows, so it is
parsed and planned once. Reading and planning the values of a few rows would cost more than storing them.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from responses_app.models.statements import run_statement, thread_database

MAX_ROWS = 500  # keeps a statement far below SQLite's limit of 32,766 parameters

Row = tuple[int | str | bytes, ...]


def table_sql(types: Sequence[str], rows: int) -> str:
    """Its columns are ``column1``, ``column2`` and so on; the types are PostgreSQL's names."""
    if connection.vendor == "postgresql":
        arrays = ", ".join([f"%b::{name}[]" for name in types])
        columns = ", ".join([f"column{number}" for number in range(1, len(types) + 1)])
        return f"SELECT * FROM unnest({arrays}) AS given({columns})"
    row = "(" + ", ".join(["%s"] * len(types)) + ")"
    return f"VALUES {', '.join([row] * rows)}"


def fetch_all(sql: str, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Run a statement with one such table."""
    database = thread_database()
    if database.vendor == "postgresql":
        # Imported here: a process on SQLite needs no psycopg.
        from responses_app.postgresql.prepared import prepared_cursor

        columns = [list(column) for column in zip(*rows, strict=True)]
        with prepared_cursor() as prepared:
            prepared.execute(sql, columns)
            return list(prepared.fetchall())
    values: list[int | str | bytes] = []
    for row in rows:
        values.extend(row)
    found, _ = run_statement(database, sql, values)
    return found
