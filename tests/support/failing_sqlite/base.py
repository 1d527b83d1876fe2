"""SQLite whose nth write from now on fails, where ``HERMES_HOME/fail_write`` says which; the disk is to blame.

A write is a statement that changes rows, or a COMMIT.
"""

import os
import re
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from responses_app.sqlite3 import base

_WRITING = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|WITH|COMMIT)\b", re.IGNORECASE)
_lock = threading.Lock()


class Cursor(base.SQLiteCursor):
    def execute(self, query: str, params: Any = None) -> Any:
        _fail_if_due(query)
        return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        _fail_if_due(query)
        return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)

    def run_directly(self, sql: str, parameters: Sequence[Any]) -> tuple[list[Any], int] | None:
        if self._is_usual():
            with self.wrap_database_errors:
                _fail_if_due(sql)
        return super().run_directly(sql, parameters)

    def commit(self) -> None:
        if self.connection is not None and self.connection.in_transaction:
            with self.wrap_database_errors:
                _fail_if_due("COMMIT")
        super().commit()


def _fail_if_due(query: str) -> None:
    if _WRITING.match(query) and _is_due():
        raise sqlite3.OperationalError("disk I/O error")


def _is_due() -> bool:
    order_path = Path(os.environ["HERMES_HOME"]) / "fail_write"
    with _lock:
        if not order_path.exists():
            return False
        left = int(order_path.read_text()) - 1
        if left > 0:
            order_path.write_text(str(left))
        else:
            order_path.unlink()
    return left == 0
