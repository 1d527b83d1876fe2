"""Statements that PostgreSQL parses and plans once for each connection."""

from typing import Any, Self

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper


class PreparedCursor(psycopg.Cursor[Any]):
    """Sends the values apart from the statement; behind a pooler, the statement is parsed each time."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        return super().execute(query, params, prepare=True, **options)


def prepared_cursor() -> CursorWrapper:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = PreparedCursor(connection.connection)
    return connection.make_cursor(cursor)  # type: ignore[arg-type]
