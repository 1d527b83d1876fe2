"""The backend for SQLite does what Django's does, with less work around each statement."""

from collections.abc import Iterator

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import IntegrityError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError
from django.db.utils import ConnectionHandler


@pytest.fixture
def database() -> Iterator[BaseDatabaseWrapper]:
    handler = ConnectionHandler({"default": {"ENGINE": "responses_app.sqlite3", "NAME": ":memory:"}})
    database = handler["default"]
    with database.cursor() as cursor:
        cursor.execute("CREATE TABLE note (text TEXT UNIQUE)")
    yield database
    database.close()


pytestmark = pytest.mark.django_db  # allows a connection


def test_parameters_are_bound_in_either_form(database: BaseDatabaseWrapper) -> None:
    with database.cursor() as cursor:
        for text in ("a", "b%"):
            cursor.execute("INSERT INTO note VALUES (%s)", [text])
        cursor.execute("SELECT text FROM note WHERE text LIKE '%%b%%' OR text = %s", ["a"])
        assert cursor.fetchall() == [("a",), ("b%",)]
        cursor.execute("SELECT text FROM note WHERE text = %(text)s", {"text": "b%"})
        assert cursor.fetchone() == ("b%",)


def test_errors_are_those_of_django(database: BaseDatabaseWrapper) -> None:
    with database.cursor() as cursor:
        cursor.execute("INSERT INTO note VALUES (%s)", ["a"])
        with pytest.raises(IntegrityError):
            cursor.execute("INSERT INTO note VALUES (%s)", ["a"])
        with pytest.raises(OperationalError):
            cursor.execute("SELECT nothing FROM note WHERE text = %s", ["a"])


def test_a_broken_transaction_takes_no_statement(
    database: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "get_connection", lambda using: database)
    with transaction.atomic(), database.cursor() as cursor:
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            cursor.execute("INSERT INTO note VALUES (%s)", ["a"])


def test_wrappers_see_every_statement(database: BaseDatabaseWrapper) -> None:
    seen: list[str] = []

    def note(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        seen.append(sql)
        return execute(sql, params, many, context)

    with database.execute_wrapper(note), database.cursor() as cursor:
        cursor.execute("SELECT text FROM note WHERE text = %s", ["a"])
    assert len(seen) == 1


async def test_the_event_loop_gets_no_cursor(database: BaseDatabaseWrapper) -> None:
    with pytest.raises(SynchronousOnlyOperation):
        database.cursor()
