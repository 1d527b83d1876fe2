"""A process that is frozen in the middle of a transaction holds its locks only for a lease."""

import time

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.utils import OperationalError

from responses_app.eventlog.availability import limit_lock_waits
from responses_app.models import Response
from responses_app.postgresql.threads import limit_waits


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_server_ends_a_transaction_that_is_idle_for_a_lease(postgres_url: str) -> None:
    with transaction.atomic():
        limit_lock_waits(0.1)
        assert shown("idle_in_transaction_session_timeout") == f"{settings.HERMES_LEASE_SECS:g}s"
        assert shown("lock_timeout") == "100ms"
    assert shown("idle_in_transaction_session_timeout") == "0"


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.usefixtures("postgres_url")
def test_a_session_that_the_server_ended_in_a_transaction_is_an_outage() -> None:
    """The client gets a 503 and asks again; PostgreSQL counts it as an error of the statement."""
    limit_waits()
    with pytest.raises(OperationalError, match="idle-in-transaction"):
        freeze_in_a_transaction()


def freeze_in_a_transaction() -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 50")
        time.sleep(0.2)
        Response.objects.exists()


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])
