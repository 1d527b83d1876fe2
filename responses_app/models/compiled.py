"""Hot statements, compiled once: the queryset stays the definition, and its SQL is kept.

Django builds the SQL of a query anew each time, which takes longer than the database takes to run it.
"""

import inspect
from asyncio import _get_running_loop
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import orjson
from django.core.exceptions import SynchronousOnlyOperation, ValidationError
from django.db import DEFAULT_DB_ALIAS, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models.sql.compiler import SQLCompiler

from responses_app.models.statements import run_statement, thread_database

Field: TypeAlias = "models.Field[Any, Any]"

# The placeholders that stand for the arguments while a query is compiled. No query has such values.
_TEXT = "\ue000{number}\ue000"
_NUMBER = 2_147_480_000  # fits the smallest integer column


@dataclass(frozen=True)
class Statement:
    sql: str
    values: list[Any]  # adapted to the database; a placeholder where an argument belongs
    arguments: list[int | None]  # for each value the number of its argument

    def bound(self, given: Sequence[Any]) -> list[Any]:
        bound = list(self.values)
        for position, number in enumerate(self.arguments):
            if number is not None:
                # On PostgreSQL an integer has a type that names the size of its column.
                bound[position] = type(bound[position])(given[number])
        return bound


@dataclass(frozen=True)
class _Query(Statement):
    compiler: SQLCompiler
    converters: dict[int, Any]


class CompiledQuery:
    """The rows of ``build(*arguments)``; the arguments are texts or integers, as it declares them.

    Unless they are converted, SQLite's rows have numbers for truth values, and texts for times.
    """

    def __init__(
        self, build: Callable[..., "models.QuerySet[Any, Any]"], *, is_converted: bool = True
    ) -> None:
        self._build = build
        self._is_converted = is_converted
        self._statements: dict[str, _Query] = {}  # by the kind of database

    @contextmanager
    def executed(self, *arguments: str | int) -> Iterator[CursorWrapper]:
        """For rows that are fetched in parts, as the database returns them."""
        database = thread_database()
        statement = self.statement(database)
        with database.cursor() as cursor:
            cursor.execute(statement.sql, statement.bound(arguments))
            yield cursor

    def rows(self, *arguments: str | int) -> list[tuple[Any, ...]]:
        if _get_running_loop() is not None:
            # Django raises this too, once it has made a connection for the task that asks.
            raise SynchronousOnlyOperation("The event loop waits for no query.")
        database = thread_database()
        statement = self.statement(database)
        found: list[tuple[Any, ...]]
        found, _ = run_statement(database, statement.sql, statement.bound(arguments))
        if found and statement.converters and self._is_converted:
            converted = statement.compiler.apply_converters(found, statement.converters)
            found = [tuple(row) for row in converted]
        return found

    def first(self, *arguments: str | int) -> Any:
        """The first column of the first row; None if there is no row."""
        for row in self.rows(*arguments):
            return row[0]
        return None

    def instance(self, *arguments: str | int) -> Any:
        """The first row of a query for whole models; None if there is no row."""
        for row in self.rows(*arguments):
            model = self.statement(thread_database()).compiler.query.model
            assert model is not None
            names = [field.attname for field in model._meta.concrete_fields]
            return model.from_db(DEFAULT_DB_ALIAS, names, row)
        return None

    def statement(self, database: BaseDatabaseWrapper) -> _Query:
        found = self._statements.get(database.vendor)
        if found is None:
            found = self._statements[database.vendor] = self._compile(database)
        return found

    def _compile(self, database: BaseDatabaseWrapper) -> _Query:
        placeholders = placeholders_of(self._build)
        compiler = self._build(*placeholders).query.get_compiler(connection=database)
        sql, values = compiler.as_sql()
        arguments = bind_arguments(values, placeholders)
        selected = [column for column, _, _ in compiler.select]
        converters = compiler.get_converters(selected)
        return _Query(sql, list(values), arguments, compiler, converters)


def column_name(field: Field, database: BaseDatabaseWrapper) -> str:
    return database.ops.quote_name(str(field.column))


# Values that most fields give to the database as they are.
_SAMPLES: tuple[Any, ...] = ("text", 1, True, None)


class Column:
    """Of one kind of database: most values are stored as they are, which is tried once."""

    def __init__(self, field: Field, database: BaseDatabaseWrapper) -> None:
        self.field = field
        self.unchanged: set[type] = set()  # the types of values that are stored as they are
        for sample in _SAMPLES:
            try:
                adapted = field.get_db_prep_save(sample, database)
            except (TypeError, ValueError, ValidationError):
                continue  # the field takes no such value
            if adapted is sample:
                self.unchanged.add(type(sample))
        is_time = isinstance(field, models.DateTimeField)
        # SQLite has no types for times and for JSON: they are text, times in UTC.
        is_sqlite = database.vendor == "sqlite"
        self._is_time_text = is_time and is_sqlite and database.timezone is UTC
        self._is_json_text = is_sqlite and isinstance(field, models.JSONField)

    def adapted(self, value: Any, database: BaseDatabaseWrapper) -> Any:
        kind = type(value)
        if kind in self.unchanged:
            return value
        if self._is_time_text and kind is datetime and value.tzinfo is UTC:
            return str(value.replace(tzinfo=None))
        if self._is_json_text and kind in (dict, list, tuple):
            with suppress(orjson.JSONEncodeError):  # numbers that only Python's own encoder takes
                return orjson.dumps(value).decode()
        adapted = self.field.get_db_prep_save(value, database)
        if adapted is value and isinstance(value, str):
            self.unchanged.add(kind)  # a choice of a list
        return adapted


def placeholders_of(build: Callable[..., Any]) -> dict[str | int, int]:
    """One for each argument, with its number."""
    placeholders: dict[str | int, int] = {}
    for number, parameter in enumerate(inspect.signature(build).parameters.values()):
        if parameter.annotation is int:
            placeholders[_NUMBER + number] = number
        else:
            placeholders[_TEXT.format(number=number)] = number
    return placeholders


def bind_arguments(values: Sequence[Any], placeholders: dict[str | int, int]) -> list[int | None]:
    """For each value the number of the argument that it stands for."""
    arguments: list[int | None] = []
    for value in values:
        is_plain = isinstance(value, str | int)
        arguments.append(placeholders.get(value) if is_plain else None)
    assert set(placeholders.values()) <= set(arguments), "an argument is not in the statement"
    return arguments


class CompiledUpdate:
    """Sets columns of the rows of ``where(*arguments)``; each set of columns is compiled once."""

    def __init__(self, where: Callable[..., "models.QuerySet[Any, Any]"]) -> None:
        self._where = CompiledQuery(where)
        self._statements: dict[tuple[str, ...], tuple[str, list[Column]]] = {}

    def execute(
        self,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        increments: Mapping[str, int] | None = None,
    ) -> int:
        """How many rows it changed; ``increments`` are added to their columns."""
        database = thread_database()
        sql, parameters = self._prepared(database, arguments, values, increments or {})
        _, count = run_statement(database, sql, parameters)
        return count

    def returning(
        self,
        column: str,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        increments: Mapping[str, int],
    ) -> Any:
        """The new value of a column of the row that it changed; None if there is no row."""
        database = thread_database()
        sql, parameters = self._prepared(database, arguments, values, increments)
        returning = f"{sql} RETURNING {database.ops.quote_name(column)}"
        changed, _ = run_statement(database, returning, parameters)
        if not changed:
            return None
        return changed[0][0]

    def _prepared(
        self,
        database: BaseDatabaseWrapper,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        added: Mapping[str, int],
    ) -> tuple[str, list[Any]]:
        key = (database.vendor, *values, "+", *added)
        if key not in self._statements:
            self._statements[key] = self._compile(database, list(values), list(added))
        sql, columns = self._statements[key]
        parameters: list[Any] = []
        for column, value in zip(columns, [*values.values(), *added.values()], strict=True):
            parameters.append(column.adapted(value, database))
        return sql, parameters + self._where.statement(database).bound(arguments)

    def _compile(
        self, database: BaseDatabaseWrapper, names: list[str], added: list[str]
    ) -> tuple[str, list[Column]]:
        compiler = self._where.statement(database).compiler
        options = compiler.query.get_meta()
        fields = [cast(Field, options.get_field(name)) for name in names + added]
        changes = []
        for field in fields:
            name = column_name(field, database)
            if field.name in added:
                changes.append(f"{name} = {name} + %s")
            else:
                changes.append(f"{name} = %s")
        table = database.ops.quote_name(options.db_table)
        condition, _ = compiler.query.where.as_sql(compiler, database)
        sql = f"UPDATE {table} SET {', '.join(changes)} WHERE {condition}"
        return sql, [Column(field, database) for field in fields]
