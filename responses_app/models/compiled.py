"""Hot statements, compiled once: the queryset stays the definition, and its SQL is kept.

Django builds the SQL of a query anew each time, which takes longer than the database takes to run it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from django.db import connection, models
from django.db.models.sql import InsertQuery
from django.db.models.sql.compiler import SQLCompiler

Field: TypeAlias = "models.Field[Any, Any]"

# The placeholders that stand for the arguments while a query is compiled. No query has such values.
_TEXT = "\ue000{number}\ue000"
_NUMBER = 2_147_480_000  # fits the smallest integer column


@dataclass(frozen=True)
class _Statement:
    sql: str
    values: list[Any]  # adapted to the database; a placeholder where an argument belongs
    arguments: list[int | None]  # for each value the number of its argument
    compiler: SQLCompiler
    converters: dict[int, Any]

    def bound(self, given: Sequence[Any]) -> list[Any]:
        bound = list(self.values)
        for position, number in enumerate(self.arguments):
            if number is not None:
                # On PostgreSQL an integer has a type that names the size of its column.
                bound[position] = type(bound[position])(given[number])
        return bound


class CompiledQuery:
    """The rows of ``build(*arguments)``; the arguments are texts or integers, as it declares them."""

    def __init__(self, build: Callable[..., "models.QuerySet[Any, Any]"]) -> None:
        self._build = build
        self._statements: dict[str, _Statement] = {}  # by the kind of database

    def rows(self, *arguments: str | int) -> list[tuple[Any, ...]]:
        statement = self.statement()
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, statement.bound(arguments))
            found: list[tuple[Any, ...]] = cursor.fetchall()
        if statement.converters:
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
            model = self.statement().compiler.query.model
            assert model is not None
            names = [field.attname for field in model._meta.concrete_fields]
            return model.from_db(connection.alias, names, row)
        return None

    def statement(self) -> "_Statement":
        found = self._statements.get(connection.vendor)
        if found is None:
            found = self._statements[connection.vendor] = self._compile()
        return found

    def _compile(self) -> _Statement:
        placeholders: dict[str | int, int] = {}
        for number, parameter in enumerate(inspect.signature(self._build).parameters.values()):
            if parameter.annotation is int:
                placeholders[_NUMBER + number] = number
            else:
                placeholders[_TEXT.format(number=number)] = number
        compiler = self._build(*placeholders).query.get_compiler(connection=connection)
        sql, values = compiler.as_sql()
        arguments = [_argument(value, placeholders) for value in values]
        assert set(placeholders.values()) <= set(arguments), "an argument is not in the statement"
        selected = [column for column, _, _ in compiler.select]
        converters = compiler.get_converters(selected)
        return _Statement(sql, list(values), arguments, compiler, converters)


def _column(field: Field) -> str:
    return connection.ops.quote_name(str(field.column))


def _argument(value: Any, placeholders: dict[str | int, int]) -> int | None:
    if isinstance(value, str | int):
        return placeholders.get(value)
    return None


class CompiledUpdate:
    """Sets columns of the rows of ``where(*arguments)``; each set of columns is compiled once."""

    def __init__(self, where: Callable[..., "models.QuerySet[Any, Any]"]) -> None:
        self._where = CompiledQuery(where)
        self._statements: dict[tuple[str, ...], tuple[str, list[Field]]] = {}

    def execute(
        self,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        increments: Mapping[str, int] | None = None,
    ) -> int:
        """How many rows it changed; ``increments`` are added to their columns."""
        sql, parameters = self._prepared(arguments, values, increments or {})
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return int(cursor.rowcount)

    def returning(
        self,
        column: str,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        increments: Mapping[str, int],
    ) -> Any:
        """The new value of a column of the row that it changed; None if there is no row."""
        sql, parameters = self._prepared(arguments, values, increments)
        with connection.cursor() as cursor:
            cursor.execute(f"{sql} RETURNING {connection.ops.quote_name(column)}", parameters)
            changed = cursor.fetchall()
        if not changed:
            return None
        return changed[0][0]

    def _prepared(
        self,
        arguments: Sequence[str | int],
        values: Mapping[str, Any],
        added: Mapping[str, int],
    ) -> tuple[str, list[Any]]:
        key = (connection.vendor, *values, "+", *added)
        if key not in self._statements:
            self._statements[key] = self._compile(list(values), list(added))
        sql, fields = self._statements[key]
        parameters: list[Any] = []
        for field, value in zip(fields, [*values.values(), *added.values()], strict=True):
            parameters.append(field.get_db_prep_save(value, connection))
        return sql, parameters + self._where.statement().bound(arguments)

    def _compile(self, names: list[str], added: list[str]) -> tuple[str, list[Field]]:
        compiler = self._where.statement().compiler
        options = compiler.query.get_meta()
        fields = [cast(Field, options.get_field(name)) for name in names + added]
        changes = []
        for field in fields:
            column = _column(field)
            if field.name in added:
                changes.append(f"{column} = {column} + %s")
            else:
                changes.append(f"{column} = %s")
        table = connection.ops.quote_name(options.db_table)
        condition, _ = compiler.query.where.as_sql(compiler, connection)
        return f"UPDATE {table} SET {', '.join(changes)} WHERE {condition}", fields


class CompiledInsert:
    """Inserts one row; an expression that is the value of a field is the same in every row."""

    def __init__(self, model: type[models.Model]) -> None:
        self._model = model
        self._fields: list[Field] = []
        for field in model._meta.concrete_fields:
            if not isinstance(field, models.AutoField):
                self._fields.append(field)
        self._statements: dict[tuple[str, ...], tuple[str, list[Any]]] = {}

    def insert(self, instance: models.Model) -> None:
        """As ``instance.save(force_insert=True)``, without its signals."""
        values = {field: field.pre_save(instance, True) for field in self._fields}
        computed = [field for field, value in values.items() if hasattr(value, "as_sql")]
        key = (connection.vendor, *[field.name for field in computed])
        if key not in self._statements:
            self._statements[key] = self._compile(values, computed)
        sql, slots = self._statements[key]
        parameters: list[Any] = []
        for slot in slots:
            if isinstance(slot, models.Field):
                slot = slot.get_db_prep_save(values[slot], connection)
            parameters.append(slot)
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            (instance.pk,) = cursor.fetchone()
        instance._state.adding = False
        instance._state.db = connection.alias

    def _compile(self, values: dict[Field, Any], computed: list[Field]) -> tuple[str, list[Any]]:
        """The SQL, and for each parameter its field, or its value where an expression has it."""
        query = InsertQuery(self._model)
        compiler = query.get_compiler(connection=connection)
        columns: list[str] = []
        placeholders: list[str] = []
        slots: list[Any] = []
        for field in self._fields:
            columns.append(_column(field))
            if field not in computed:
                placeholders.append("%s")
                slots.append(field)
                continue
            expression = values[field].resolve_expression(query, for_save=True)
            fragment, parameters = compiler.compile(expression)
            placeholders.append(fragment)
            slots.extend(parameters)
        table = connection.ops.quote_name(self._model._meta.db_table)
        sql = (
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"VALUES ({', '.join(placeholders)}) RETURNING {_column(self._model._meta.pk)}"
        )
        return sql, slots
