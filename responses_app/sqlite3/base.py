"""The backend that ``DATABASES`` names: SQLite's part of a small statement is a tenth of Django's."""

import sqlite3
from asyncio import _get_running_loop
from collections.abc import Sequence
from functools import lru_cache
from threading import get_ident
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.utils import CursorWrapper

MAX_STATEMENTS = 256  # whose conversion is kept


class SQLiteCursor(base.SQLiteCursorWrapper):
    def convert_query(self, query: str, *, param_names: list[str] | None = None) -> str:
        if param_names is not None:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


@lru_cache(MAX_STATEMENTS)
def _with_question_marks(query: str) -> str:
    """As Django converts it, which searches the text of a statement each time."""
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


class Cursor(CursorWrapper):
    """Raises the errors that Django's own raises, without a new function for each fetch."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        if self.db.execute_wrappers:
            return super().execute(sql, params)
        self.db.validate_no_broken_transaction()
        with self.db.wrap_database_errors:
            return self.cursor.execute(sql, params)

    def fetchone(self) -> Any:
        with self.db.wrap_database_errors:
            return self.cursor.fetchone()

    def fetchall(self) -> Any:
        with self.db.wrap_database_errors:
            return self.cursor.fetchall()


class DatabaseWrapper(base.DatabaseWrapper):
    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=SQLiteCursor)

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return Cursor(cursor, self)

    def cursor(self) -> Any:
        if not self._is_usual():
            return super().cursor()
        with self.wrap_database_errors:
            return Cursor(self.create_cursor(), self)

    def run_directly(self, sql: str, parameters: Sequence[Any]) -> tuple[list[Any], int] | None:
        """The rows and their count, without a cursor of Django; None where that one does more."""
        if not self._is_usual() or self.execute_wrappers:
            return None
        self.validate_no_broken_transaction()
        connection: Any = self.connection
        try:
            cursor = connection.execute(_with_question_marks(sql), parameters)
            return cursor.fetchall(), cursor.rowcount
        except sqlite3.Error:
            with self.wrap_database_errors:
                raise

    def _is_usual(self) -> bool:
        return (
            self.connection is not None
            and self._thread_ident == get_ident()  # type: ignore[attr-defined]
            and not self.health_check_enabled  # type: ignore[attr-defined]
            and not self.queries_logged
            and _get_running_loop() is None
        )
