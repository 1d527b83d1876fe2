"""An update that sets columns to expressions, compiled once."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql import UpdateQuery

from responses_app.models.compiled import Statement, bind_arguments, placeholders_of
from responses_app.models.statements import run_statement, thread_database

Rows = Callable[..., "models.QuerySet[Any, Any]"]
Values = Callable[..., Mapping[str, Any]]


class CompiledMove:
    """``rows(*arguments).update(**values(*arguments))``; both functions take the same arguments."""

    def __init__(self, rows: Rows, values: Values) -> None:
        self._rows = rows
        self._values = values
        self._statements: dict[str, Statement] = {}  # by the kind of database

    def execute(self, *arguments: str | int) -> int:
        """How many rows it changed."""
        database = thread_database()
        if database.vendor not in self._statements:
            self._statements[database.vendor] = self._compile(database)
        statement = self._statements[database.vendor]
        _, changed = run_statement(database, statement.sql, statement.bound(arguments))
        return changed

    def _compile(self, database: BaseDatabaseWrapper) -> Statement:
        placeholders = placeholders_of(self._rows)
        query: Any = self._rows(*placeholders).query.chain(UpdateQuery)
        query.add_update_values(dict(self._values(*placeholders)))
        sql, values = query.get_compiler(connection=database).as_sql()
        return Statement(sql, list(values), bind_arguments(values, placeholders))
