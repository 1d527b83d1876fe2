"""``serve`` and ``runworker`` refuse a database that lacks a migration."""

import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from gateway_app.management.migrations import is_up_to_date
from gateway_app.management.serving import check_start

pytestmark = pytest.mark.django_db


def test_a_migrated_database_is_up_to_date() -> None:
    assert is_up_to_date()


def test_a_database_with_migrations_of_a_newer_version_is_up_to_date() -> None:
    MigrationRecorder(connection).record_applied("responses_app", "9999_newer")
    assert is_up_to_date()


@pytest.mark.parametrize("app", ["responses_app", "gateway_app", "auth"])
def test_a_database_that_lacks_a_migration_is_refused(app: str) -> None:
    MigrationRecorder(connection).record_unapplied(app, "0001_initial")
    with pytest.raises(CommandError, match="not up to date"):
        check_start()
