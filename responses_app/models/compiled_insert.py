"""The insertion of one row, compiled once."""

from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql import InsertQuery

from responses_app.models.compiled import Column, column_name


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


class CompiledInsert:
    """Inserts one row; an expression that is the value of a field is the same in every row."""

    def __init__(self, model: type[models.Model]) -> None:
        self._model = model
        self._columns: dict[str, list[Column]] = {}  # by the kind of database
        self._statements: dict[tuple[str, ...], _Insertion] = {}

    def insert(self, instance: models.Model) -> None:
        """As ``instance.save(force_insert=True)``, without its signals."""
        is_new = self._insert(instance, "")
        assert is_new, "the database returns the key of every row that it inserts"

    def insert_if_new(self, instance: models.Model) -> bool:
        """False if there is a row that a unique constraint does not allow beside this one."""
        return self._insert(instance, "ON CONFLICT DO NOTHING")

    def _insert(self, instance: models.Model, on_conflict: str) -> bool:
        database = connections[DEFAULT_DB_ALIAS]
        values: list[Any] = []
        computed: list[str] = []  # the fields whose values are expressions
        for column in self._columns_of(database):
            value = getattr(instance, column.field.attname)
            if type(value) not in column.unchanged:
                value = column.field.pre_save(instance, True)
                if hasattr(value, "as_sql"):
                    computed.append(column.field.name)
                else:
                    value = column.field.get_db_prep_save(value, database)
            values.append(value)
        key = (database.vendor, on_conflict, *computed)
        if key not in self._statements:
            self._statements[key] = self._compile(database, values, computed, on_conflict)
        statement = self._statements[key]
        with database.cursor() as cursor:
            cursor.execute(statement.sql, statement.parameters(values))
            inserted = cursor.fetchone()
        if inserted is None:
            return False
        (instance.pk,) = inserted
        instance._state.adding = False
        instance._state.db = database.alias
        return True

    def _columns_of(self, database: BaseDatabaseWrapper) -> list[Column]:
        found = self._columns.get(database.vendor)
        if found is not None:
            return found
        columns: list[Column] = []
        for field in self._model._meta.concrete_fields:
            if isinstance(field, models.AutoField):
                continue
            column = Column(field, database)
            if type(field).pre_save is not models.Field.pre_save:
                column.unchanged = set()  # it may replace the value, as ``auto_now`` does
            columns.append(column)
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
