"""A turn that parks while another process decides: the decision is not lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.db import connections, transaction
from django.utils import timezone

from responses_app.models import Approver, Response, ToolEvent, ToolStatus
from responses_app.services.lifecycle.approvals import park
from tests.support.server import eventually
from tests.support.stored_logs import make_response

pytestmark = pytest.mark.row_locks
CALL = "call_1"


def waiting_turn() -> Response:
    row = make_response(attempt=1)
    ToolEvent.objects.create(
        response=row,
        call_id=CALL,
        name="guarded",
        attempt=1,
        status=ToolStatus.AWAITING_APPROVAL,
        approver=Approver.CLIENT,
        expires_at=timezone.now() + timedelta(hours=1),
    )
    return row


def park_in_a_transaction(row: Response) -> bool:
    try:
        with transaction.atomic():
            return park(row, [CALL])
    finally:
        connections.close_all()


def waits_for_a_lock(other: psycopg.Connection) -> Callable[[], bool]:
    return lambda: other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is not None


def test_a_decision_that_another_process_commits_meanwhile_is_seen(postgres_url: str) -> None:
    row = waiting_turn()
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as threads:
        other.execute("UPDATE responses_app_toolevent SET decision = 'once' WHERE response_id = %s", [row.pk])
        other.execute("UPDATE responses_app_response SET parked_until = NULL WHERE id = %s", [row.pk])
        parking = threads.submit(park_in_a_transaction, row)
        eventually(waits_for_a_lock(other), 30, "the wait for the row")
        other.commit()
        assert parking.result(30)
    row.refresh_from_db()
    assert (row.parked_until, row.lease_owner) == (None, "")


def test_a_turn_without_a_decision_is_parked_until_its_call_expires(postgres_url: str) -> None:
    row = waiting_turn()
    assert park_in_a_transaction(row)
    row.refresh_from_db()
    assert row.parked_until == ToolEvent.objects.get(response=row).expires_at
