"""What a piece of work costs the database: its statements, their plans, and the steps they take."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
SQLITE_INDEX = re.compile(r"USING (?:COVERING )?INDEX (\S+)")
POSTGRES_INDEX = re.compile(r"Scan(?: Backward)? using (\S+) on|Bitmap Index Scan on (\S+)")
# PostgreSQL has a second index on a text key, for LIKE, and uses either.
PRIMARY_KEY = re.compile(r"sqlite_autoindex_|\w+_pkey$|responses_app_(?:response|conversation)_id_\w+_like$")
EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN "}
STEP_SIZE = 10  # virtual machine instructions between two counts


@contextmanager
def collected_statistics() -> Iterator[None]:
    """Statistics of the tables as they are now, for the plans inside.

    SQLite keeps what it has read of them for the life of the connection, also after a rollback:
    the plans of later tests would be those of another table.
    """
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        yield
        if connection.vendor == "sqlite":
            cursor.execute("DELETE FROM sqlite_stat1")
            cursor.execute("ANALYZE sqlite_schema")  # reads them again


@contextmanager
def statements() -> Iterator[list[tuple[str, Any]]]:
    """What is executed inside, with its parameters."""
    seen: list[tuple[str, Any]] = []

    def note(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        seen.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield seen


@contextmanager
def explained(table: str) -> Iterator[list[str]]:
    """The plans of the statements inside that read a table, made when each is executed."""
    lines: list[str] = []

    def explain(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith("SELECT") and table in sql:
            with connection.cursor() as cursor:
                cursor.execute(EXPLAIN[connection.vendor] + sql, params)
                lines.extend(str(row[-1]).strip() for row in cursor.fetchall())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield lines


def plan_lines(work: Callable[[], Any]) -> list[str]:
    """The plans of all statements of this work, line by line."""
    with statements() as seen:
        work()
    prefix = EXPLAIN[connection.vendor]
    lines: list[str] = []
    for sql, params in seen:
        if re.match("SELECT|UPDATE|DELETE|WITH", sql):
            with connection.cursor() as cursor:
                cursor.execute(prefix + sql, params)
                lines += [str(row[-1]).strip() for row in cursor.fetchall()]
    return lines


def used_indexes(lines: list[str]) -> set[str]:
    """The indexes that a plan names; a table that is read whole counts as ``whole NAME``."""
    used: set[str] = set()
    for line in lines:
        found = SQLITE_INDEX.search(line) or POSTGRES_INDEX.search(line)
        if found is not None:
            used.add(_plain(next(filter(None, found.groups()))))
        elif (whole := re.search(r"(?:^SCAN|Seq Scan on) (\S+)", line)) is not None:
            used.add(f"whole {whole.group(1)}")
    return used


def _plain(index: str) -> str:
    return "primary key" if PRIMARY_KEY.match(index) else index


def sqlite_steps(work: Callable[[], Any]) -> int:
    """How many instructions SQLite's virtual machine ran for this work, to the nearest few."""
    count = 0

    def step() -> int:
        nonlocal count
        count += STEP_SIZE
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(step, STEP_SIZE)
    try:
        work()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return count
