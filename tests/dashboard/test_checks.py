"""The dashboard shows each check in words, and the whole cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from gateway_app.models import RuntimeProcess
from gateway_app.operations.dashboard.checks import WORDS, findings
from gateway_app.operations.health import Health, Stored, Work, assess, look
from gateway_app.operations.health_checks import check
from responses_app.metrics import Outcome, last_outcomes
from responses_app.models import Response, Session
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_cache")]


def health(**checks: dict[str, Any]) -> Health:
    return Health(work=None, processes=[], storage=None, mcp=[], checks=checks)


def test_every_check_has_words() -> None:
    assert set(look().checks) == set(WORDS)


def test_a_database_that_does_not_answer_is_described_without_a_gap() -> None:
    found = findings(assess(Stored(trouble="the disk is gone")))
    first = next(finding for finding in found if finding.name == "state_db")
    assert first.problem == "It can't be read: the disk is gone."
    for finding in found:
        assert "None" not in finding.problem + finding.remedy
        assert finding.is_ok or (finding.problem and finding.remedy), finding.name


def test_failed_checks_come_first() -> None:
    found = findings(health(home=check(True), disk=check(False, used_percent=97.5)))
    assert [(finding.title, finding.is_ok) for finding in found] == [
        ("Disk", False),
        ("Home folder", True),
    ]
    assert found[0].problem == "97.5 % of it is used."


def test_a_check_shows_since_when_it_fails() -> None:
    asked_at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    model = check(False, error="server_error", asked_at=asked_at.isoformat())
    assert findings(health(model=model))[0].since == asked_at
    work = Work(running=0, queued=1, awaiting_approval=0, oldest_queued_secs=90, oldest_ready_secs=90)
    queue = check(False, queued=1, oldest_secs=90)
    waiting = Health(work=work, processes=[], storage=None, mcp=[], checks={"background_queues": queue})
    since = findings(waiting)[0].since
    assert since is not None
    assert timedelta(seconds=89) < timezone.now() - since < timedelta(seconds=100)


def test_the_dashboard_shows_a_failed_check_with_its_remedy(admin_client: Client, settings: Any) -> None:
    settings.HERMES_DEGRADED = "the folder is read-only."
    page = admin_client.get("/").content.decode()
    assert "The server stores everything in a temporary folder: the folder is read-only." in page
    assert "Make HERMES_HOME writable, then start the server again." in page
    assert '<li id="check-disk"><span class="badge ready">ok</span> Disk</li>' in page


def test_a_failing_model_is_shown_with_the_time_of_its_error(
    admin_client: Client,
    settings: Any,
) -> None:
    model = settings.HERMES_MODELS[0]
    known = (model["provider"], model["model"])
    last_outcomes[known] = Outcome(timezone.now().timestamp(), "server_error")
    try:
        page = admin_client.get("/dashboard/now").content.decode()
    finally:
        del last_outcomes[known]
    assert "<strong>Model</strong>, since <time datetime=" in page
    assert "The last request to it failed: server_error." in page


def open_response(owner: User, **fields: Any) -> Response:
    session = Session.objects.opened(owner.pk, None, "responses")
    known = {
        "turn": 1,
        "model": "m",
        "status": Status.QUEUED,
        "on_disconnect": OnDisconnect.CONTINUE,
    }
    made: Response = Response.objects.create(owner=owner, session=session, **(known | fields))
    return made


def process(name: str, role: str, **fields: Any) -> None:
    RuntimeProcess.objects.create(id=name, host=f"host-{name}", pid=7, pid_started="", role=role, **fields)


def test_the_dashboard_shows_the_whole_cluster(admin_client: Client, admin_user: User) -> None:
    process("a", "web", version="1.0", lag_ms=3)
    process("b", "worker", version="1.1", lag_ms=42, active_responses=5, is_draining=True)
    process("c", "worker", version="1.1", active_responses=2)
    silent = timezone.now() - timedelta(hours=1)
    process("d", "worker", version="0.9", heartbeat_at=silent, lag_ms=900, active_responses=9)
    process("e", "web", state="stopped", exit_reason="SIGTERM")
    open_response(admin_user)
    bob = User.objects.create_user("bob")
    for _ in range(2):
        open_response(bob, created_at=timezone.now() - timedelta(minutes=2))
    open_response(bob, status=Status.IN_PROGRESS, lease_owner="d", lease_until=silent)
    page = admin_client.get("/dashboard/now").content.decode()
    cluster = page[page.index('<p id="cluster">') :].partition("</p>")[0]
    assert "Live: 1 web, 2 worker; version 1.0 and 1.1;" in cluster
    assert "leases: 7 held, 1 expired; slowest writer: 42 ms." in cluster
    assert "worker host-b:7" in page
    assert "running, draining" in page
    assert "running, silent" in page
    assert "SIGTERM" in page
    owners = page[page.index("Queued by owner") :]
    assert "<strong><bdi>bob</bdi></strong>: 3</a>" in owners
    assert "<strong><bdi>admin</bdi></strong>: 1</a>" in owners
    assert owners.index("<bdi>bob") < owners.index("<bdi>admin")


def test_what_a_queued_turn_waits_for_and_the_end_of_an_approval_are_on_the_dashboard(
    admin_client: Client, admin_user: User
) -> None:
    until = timezone.now() + timedelta(minutes=5)
    parked = open_response(admin_user, status=Status.IN_PROGRESS, parked_until=until)
    call = {
        "call_id": "c",
        "name": "guarded",
        "attempt": 1,
        "status": "awaiting_approval",
        "expires_at": until,
    }
    parked.tool_events.create(**call)
    Response.objects.create(
        owner=admin_user,
        session=parked.session,
        turn=2,
        model="m",
        status=Status.QUEUED,
        waits_for_turn=True,
    )
    page = admin_client.get("/dashboard/now").content.decode()
    shown = f"{until:%Y-%m-%d %H:%M:%S} UTC</time>"
    assert page.count(shown) == 2, "in the list of approvals and in that of what runs"
    assert "waits for the approval of guarded, until <time" in page
    assert f'waits for turn 1 of its session <a href="/live/{parked.pk}">' in page
