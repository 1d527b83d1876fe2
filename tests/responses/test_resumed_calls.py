"""A process may die between a step in the ledger and the note on it: clients get each step once.

The ledger is moved on, or back, while the server is down: that is how such a death leaves it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.hermes_client import (
    all_run_events,
    ended_run,
    event_data,
    post,
    start_run,
    until_status,
)
from tests.support.scripted_requests import call, effects
from tests.support.server import Server, eventually, script

pytestmark = [pytest.mark.any_database, pytest.mark.fault]

IMPORTS = (
    "from datetime import timedelta; from django.utils import timezone; from responses_app.models import ToolEvent"
)


def start_run_and_kill(server: Server, name: str) -> str:
    """In the middle of its call."""
    run_id = start_run(server, {"input": script(call(name, text="safe to repeat", gate="later"))})
    if name == "guarded":
        until_status(server, run_id, "waiting_for_approval")
        post(server, f"/v1/runs/{run_id}/approval", {"choice": "once"})
    eventually(lambda: effects(server, "safe to repeat"), what="the call")
    server.kill()
    return run_id


def start_with_ledger(server: Server, fields: str) -> None:
    server.manage("shell", "-v0", "-c", f"{IMPORTS}; ToolEvent.objects.update({fields})")
    server.start()


def lose_start(server: Server) -> None:
    """The process died before it stored that the call had started."""
    lost = "if b'hermes.tool.started' in bytes(segment.frames): segment.delete()"
    code = f"from responses_app.models import EventSegment\nfor segment in EventSegment.objects.all():\n {lost}"
    server.manage("shell", "-v0", "-c", code)


def events_of(server: Server, run_id: str) -> list[dict[str, Any]]:
    assert ended_run(server, run_id)["status"] == "completed"
    check_log(server, f"resp_{run_id[4:]}")
    return event_data(all_run_events(server, run_id))


def test_the_end_of_a_call_is_sent_after_all(make_server: Callable[..., Server]) -> None:
    server = make_server()
    run_id = start_run_and_kill(server, "effect")
    over = "started_at=timezone.now() - timedelta(seconds=3), finished_at=timezone.now()"
    start_with_ledger(server, f"status='completed', output='done', {over}")
    ends = [event for event in events_of(server, run_id) if event["event"] == "tool.completed"]
    assert [(event["tool"], event["error"], round(event["duration"])) for event in ends] == [("effect", False, 3)]


@pytest.mark.parametrize(("status", "is_error"), [("completed", False), ("running", True)])
def test_the_start_of_a_call_is_sent_after_all(make_server: Callable[..., Server], status: str, is_error: bool) -> None:
    server = make_server()
    run_id = start_run_and_kill(server, "effect")
    lose_start(server)
    start_with_ledger(server, f"status={status!r}, output='done'")
    steps = [event for event in events_of(server, run_id) if event["event"].startswith("tool.")]
    assert [event["event"] for event in steps] == ["tool.started", "tool.completed"]
    assert steps[1]["error"] is is_error


def test_a_request_for_consent_is_sent_after_all(make_server: Callable[..., Server]) -> None:
    server = make_server()
    run_id = start_run_and_kill(server, "effect")
    reason = "approval_reason='why', expires_at=timezone.now() + timedelta(hours=1)"
    start_with_ledger(server, f"status='awaiting_approval', {reason}")
    shown = until_status(server, run_id, "waiting_for_approval")
    assert shown["last_event"] == "approval.request"
    post(server, f"/v1/runs/{run_id}/approval", {"choice": "deny"})
    kinds = [event["event"] for event in events_of(server, run_id)]
    assert [kind for kind in kinds if kind.startswith("approval.")] == ["approval.request", "approval.responded"]


def test_an_answer_to_a_request_is_sent_once(make_server: Callable[..., Server]) -> None:
    server = make_server()
    run_id = start_run_and_kill(server, "guarded")
    start_with_ledger(server, "status='awaiting_approval'")
    server.open_gate("later")
    kinds = [event["event"] for event in events_of(server, run_id)]
    assert [kind for kind in kinds if not kind.startswith("message.")] == [
        "approval.request",
        "approval.responded",
        "tool.started",
        "tool.completed",
        "run.completed",
    ]
