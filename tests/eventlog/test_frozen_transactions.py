"""A process that is frozen in the middle of a transaction holds its locks only for a lease."""

import pytest
from django.conf import settings
from django.db import connection, transaction

from responses_app.eventlog.availability import limit_lock_waits


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_server_ends_a_transaction_that_is_idle_for_a_lease(postgres_url: str) -> None:
    with transaction.atomic():
        limit_lock_waits(0.1)
        assert shown("idle_in_transaction_session_timeout") == f"{settings.HERMES_LEASE_SECS:g}s"
        assert shown("lock_timeout") == "100ms"
    assert shown("idle_in_transaction_session_timeout") == "0"


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])
