"""The insertion of one row, compiled once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.base import ModelState
from django.db.models.sql import InsertQuery

from responses_app.models.compiled import Column, Field, column_name
from responses_app.models.statements import run_statement, thread_database

# Those of times return the value of the instance, but for the two options below.
_KEEPING_VALUES = (models.Field.pre_save, models.DateTimeField.pre_save)


@dataclass(frozen=True)
class _Insertion:
    sql: str
    template: list[Any]  # the parameters of expressions, and room for the others
    given: list[tuple[int, int]]  # the position of a parameter, and the number of its column

    def parameters(self, values: list[Any]) -> list[Any]:
        parameters = list(self.template)
        for position, number in self.given:
            parameters[position] = values[number]
        return parameters


class _InsertedColumn(Column):
    def __init__(self, field: Field, database: BaseDatabaseWrapper) -> None:
        super().__init__(field, database)
        self.attname = field.attname
        self.replaces_values = type(field).pre_save not in _KEEPING_VALUES
        for option in ("auto_now", "auto_now_add"):
            self.replaces_values |= getattr(field, option, False)
        if self.replaces_values:
            self.unchanged = set()


class CompiledInsert:
    """Inserts one row; an expression that is the value of a field is the same in every row."""

    def __init__(self, model: type[models.Model]) -> None:
        self._model = model
        self._columns: dict[str, list[_InsertedColumn]] = {}  # by the kind of database
        self._statements: dict[tuple[str, ...], _Insertion] = {}
        self._defaults: dict[str, Any] | None = None
        self._computed: dict[str, Callable[[], Any]] = {}  # the defaults that are made for each row

    def new(self, **values: Any) -> Any:
        """As ``model(**values)``, without its signals; keys of other rows come by their columns."""
        if self._defaults is None:
            self._defaults = self._find_defaults()
        instance = self._model.__new__(self._model)
        fields = instance.__dict__
        fields["_state"] = ModelState()
        fields.update(self._defaults)
        for name, make in self._computed.items():
            if name not in values:
                fields[name] = make()
        fields.update(values)
        return instance

    def insert(self, instance: models.Model) -> None:
        """As ``instance.save(force_insert=True)``, without its signals."""
        is_new = self._insert(instance, "")
        assert is_new, "the database returns the key of every row that it inserts"

    def insert_if_new(self, instance: models.Model) -> bool:
        """False if there is a row that a unique constraint does not allow beside this one."""
        return self._insert(instance, "ON CONFLICT DO NOTHING")

    def _insert(self, instance: models.Model, on_conflict: str) -> bool:
        database = thread_database()
        fields = instance.__dict__
        values: list[Any] = []
        computed: list[str] = []  # the fields whose values are expressions
        for column in self._columns_of(database):
            value = fields[column.attname]
            if type(value) not in column.unchanged:
                if column.replaces_values:
                    value = column.field.pre_save(instance, True)
                if hasattr(value, "as_sql"):
                    computed.append(column.field.name)
                else:
                    value = column.adapted(value, database)
            values.append(value)
        key = (database.vendor, on_conflict, *computed)
        if key not in self._statements:
            self._statements[key] = self._compile(database, values, computed, on_conflict)
        statement = self._statements[key]
        inserted, _ = run_statement(database, statement.sql, statement.parameters(values))
        if not inserted:
            return False
        instance.pk = inserted[0][0]
        instance._state.adding = False
        instance._state.db = database.alias
        return True

    def _find_defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {}
        for field in self._model._meta.concrete_fields:
            defaults[field.attname] = field.get_default()
            if field.has_default() and callable(field.default):
                self._computed[field.attname] = field.default
        return defaults

    def _columns_of(self, database: BaseDatabaseWrapper) -> list[_InsertedColumn]:
        found = self._columns.get(database.vendor)
        if found is not None:
            return found
        columns: list[_InsertedColumn] = []
        for field in self._model._meta.concrete_fields:
            if isinstance(field, models.AutoField):
                continue
            columns.append(_InsertedColumn(field, database))
        self._columns[database.vendor] = columns
        return columns

    def _compile(
        self,
        database: BaseDatabaseWrapper,
        values: list[Any],
        computed: list[str],
        on_conflict: str,
    ) -> _Insertion:
        query = InsertQuery(self._model)
        compiler = query.get_compiler(connection=database)
        names: list[str] = []
        placeholders: list[str] = []
        template: list[Any] = []
        given: list[tuple[int, int]] = []
        for number, column in enumerate(self._columns_of(database)):
            names.append(column_name(column.field, database))
            if column.field.name not in computed:
                placeholders.append("%s")
                given.append((len(template), number))
                template.append(None)
                continue
            expression = values[number].resolve_expression(query, for_save=True)
            fragment, parameters = compiler.compile(expression)
            placeholders.append(fragment)
            template.extend(parameters)
        table = database.ops.quote_name(self._model._meta.db_table)
        key = column_name(self._model._meta.pk, database)
        sql = (
            f"INSERT INTO {table} ({', '.join(names)}) "
            f"VALUES ({', '.join(placeholders)}) {on_conflict} RETURNING {key}"
        )
        return _Insertion(sql, template, given)
