"""The transactions of long commands: how many rows each removes, and what is done outside of them."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from responses_app.management import pacing
from responses_app.management.pacing import PacedTransactions
from responses_app.models import Response
from responses_app.services.archive.records import response_records
from tests.support.bulk_rows import copy_response, give_content, make_row
from tests.support.query_plans import Execute

pytestmark = pytest.mark.django_db(transaction=True)
MOST_ROWS = 50  # of responses in one transaction
MOST_STATEMENTS = 25


class Transactions:
    """What is executed in each transaction, and how many responses each removes."""

    def __init__(self) -> None:
        self.statements: list[list[str]] = []
        self.removed: list[int] = []
        self._is_inside = False

    def note(self, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not connection.in_atomic_block:
            self._is_inside = False
        elif not self._is_inside or sql.startswith("BEGIN"):
            self._is_inside = True
            self.statements.append([])
            self.removed.append(0)
        result = execute(sql, params, many, context)
        if self._is_inside:
            self.statements[-1].append(sql)
        if sql.startswith('DELETE FROM "responses_app_response"'):
            self.removed[-1] += context["cursor"].rowcount
        return result


@contextmanager
def transactions() -> Iterator[Transactions]:
    seen = Transactions()
    with connection.execute_wrapper(seen.note):
        yield seen


@pytest.mark.parametrize("is_chain", [True, False])
def test_each_transaction_of_a_prune_removes_few_rows_with_few_statements(is_chain: bool) -> None:
    copy_response(make_row(at=timezone.now() - timedelta(days=30)), 399, is_chain=is_chain)
    give_content()
    with transactions() as seen:
        call_command("prune_responses", "--days", "5", stdout=StringIO(), stderr=StringIO())
    assert Response.objects.count() == 0
    assert sum(seen.removed) == 400
    assert max(seen.removed) <= MOST_ROWS
    assert max(map(len, seen.statements)) <= MOST_STATEMENTS


def test_a_record_that_is_here_or_does_not_add_up_takes_no_transaction(tmp_path: Path) -> None:
    row = make_row(deleted_at=timezone.now())
    [record] = response_records([row])
    changed = {**record, "response": {**record["response"], "deleted_at": None, "id": "resp_" + "0" * 32}}
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(orjson.dumps(record) + b"\n" + orjson.dumps(changed))
    with transactions() as seen, pytest.raises(CommandError, match="1 of 2 records were refused"):
        call_command("import_responses", str(archive), stdout=StringIO(), stderr=StringIO())
    assert seen.statements == []


@pytest.fixture
def database_file() -> str:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has many writers")
    return str(connection.settings_dict["NAME"])


def rest_between(paced: PacedTransactions) -> float:
    """The seconds between two transactions, of which the first takes 0.1 s."""
    with paced.begin():
        time.sleep(0.1)
    ended_at = time.monotonic()
    with paced.begin():
        return time.monotonic() - ended_at


def test_a_command_rests_between_transactions_as_long_as_the_last_one_took(database_file: str) -> None:
    assert rest_between(PacedTransactions()) >= 0.09


def test_a_command_that_is_alone_rests_only_after_another_program_has_written(
    database_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "ALONE_SECS", 0.0)
    paced = PacedTransactions()
    assert rest_between(paced) < 0.09
    monkeypatch.setattr(pacing, "ALONE_SECS", 60.0)
    make_row()  # by this program
    assert rest_between(paced) < 0.09
    with closing(sqlite3.connect(database_file)) as other:
        other.execute("UPDATE auth_user SET first_name = 'changed'")
        other.commit()
    assert rest_between(paced) >= 0.09
