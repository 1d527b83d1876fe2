"""Texts of megabytes: a page has their beginning, and the dashboard does not read the rest."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from gateway_app.operations.dashboard import lists
from responses_app.admin.timeline import INDENTED_CHARS, SHOWN_CHARS, pretty
from responses_app.models import InputItem, ToolEvent
from responses_app.models.tool_events import Approver, ToolStatus
from tests.support.bulk_rows import make_row

pytestmark = pytest.mark.django_db


def test_the_live_view_cuts_a_very_long_question(admin_client: Client) -> None:
    row = make_row()
    question = {"type": "message", "role": "user", "content": "x" * (SHOWN_CHARS + 5000)}
    InputItem.objects.create(response=row, position=0, item=question)
    page = admin_client.get(f"/live/{row.pk}").content.decode()
    assert "x" * SHOWN_CHARS in page
    assert "x" * (SHOWN_CHARS + 1) not in page
    assert "5,000 more characters" in page


def test_the_dashboard_reads_how_the_arguments_of_a_waiting_call_begin() -> None:
    until = timezone.now() + timedelta(minutes=5)
    long = json.dumps({"text": "y" * 1_000_000})
    ToolEvent.objects.create(
        response=make_row(status="in_progress", parked_until=until),
        call_id="call_1",
        name="guarded",
        attempt=1,
        arguments=long,
        expires_at=until,
        status=ToolStatus.AWAITING_APPROVAL,
        approver=Approver.OPERATOR,
    )
    [event] = lists.waiting_approvals()
    assert event.get_deferred_fields() == {"arguments", "output", "images"}
    assert vars(event)["first_arguments"] == long[: lists.SHOWN_ARGUMENT_CHARS + 1]


def test_json_of_megabytes_is_not_indented() -> None:
    assert pretty(json.dumps({"a": "z" * 50_000})).startswith('{\n  "a"')
    assert pretty(json.dumps({"a": "z" * INDENTED_CHARS})).startswith('{"a"')
