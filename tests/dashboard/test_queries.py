"""What the dashboard counts, and what that costs the database: constant queries, along indexes."""

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway_app.models import RuntimeProcess
from gateway_app.operations.dashboard import lists
from gateway_app.operations.dashboard.numbers import CLASSES_MS, numbers, percentile
from gateway_app.operations.dashboard.windows import WINDOWS
from gateway_app.operations.doctor.database import check_database
from gateway_app.operations.health import current_work, processes
from responses_app.models import ApiKey, Response, Session, ToolEvent
from responses_app.models.tool_events import ToolStatus
from responses_app.protocol.status import OnDisconnect, Status
from tests.support.query_plans import collected_statistics

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_cache")]
DASHBOARD_QUERIES = 24  # whatever is stored
HOUR = WINDOWS["1h"]


@pytest.fixture
def admin() -> User:
    return User.objects.create_superuser("operator", password="p")


def make_ended(owner: User, count: int, *, minutes_ago: float = 5, **fields: Any) -> list[Response]:
    at = timezone.now() - timedelta(minutes=minutes_ago)
    session = Session.objects.opened(owner.pk, None, "responses")
    known = {"status": Status.COMPLETED, "model": "m", "requested_by": "key root", "total_ms": 1000, **fields}
    known |= {"owner": owner, "session": session, "on_disconnect": OnDisconnect.CONTINUE, "is_log_merged": True}
    return Response.objects.bulk_create(
        Response(turn=turn, created_at=at, finished_at=at - timedelta(seconds=turn % 50), **known)
        for turn in range(1, count + 1)
    )


def make_open(owner: User, **fields: Any) -> Response:
    session = Session.objects.opened(owner.pk, None, "responses")
    made: Response = Response.objects.create(
        owner=owner, session=session, turn=1, status=Status.IN_PROGRESS, model="m", on_disconnect="continue", **fields
    )
    return made


def test_the_numbers_are_right(admin: User) -> None:
    key, _ = ApiKey.objects.issue("a key", admin)
    tokens = {"input_tokens": 10, "output_tokens": 3}
    made = make_ended(admin, 3, model="a", requested_by=f"key {key.pk}", first_output_ms=90, tool_calls=2, **tokens)
    make_ended(admin, 1, model="b", status=Status.FAILED, requested_by="operator operator")
    make_ended(admin, 5, minutes_ago=600, model="long ago")
    ToolEvent.objects.create(response=made[0], call_id="1", name="t", attempt=1, status=ToolStatus.COMPLETED)
    ToolEvent.objects.create(response=made[0], call_id="2", name="t", attempt=1, status=ToolStatus.FAILED)
    found = numbers(HOUR)
    assert (found.whole.ended, found.whole.failed, found.whole.error_percent) == (4, 1, 25.0)
    assert [(use.name, use.responses, use.tokens, use.tool_calls) for use in found.by_model] == [
        ("a", 3, 39, 6),
        ("b", 1, 0, 0),
    ]
    assert [(use.name, use.failed) for use in found.by_key] == [("key a key", 0), ("operator operator", 1)]
    assert [(tool.name, tool.calls, tool.failed) for tool in found.tools] == [("t", 2, 1)]
    assert 75 < (percentile(found.whole.first_classes, 0.5) or 0) <= 100
    slots = [point for point in found.points if point.ended]
    assert sum(point.ended for point in slots) == 4
    assert all(abs(point.at - (timezone.now().timestamp() - 300)) < 180 for point in slots)
    assert numbers(WINDOWS["24h"]).whole.ended == 9


def test_percentiles_are_read_between_the_bounds_of_a_class() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({100: 4}, 0.5) == 88
    assert percentile({100: 99, 1000: 1}, 0.95) == 99
    assert percentile({10: 1, 86_400_000: 1}, 0.99) is not None
    assert all(a < b for a, b in pairwise(CLASSES_MS))


def test_lists_show_the_slowest_the_failed_and_what_waits(admin: User) -> None:
    slow = make_ended(admin, 1, total_ms=9000)[0]
    bad = make_ended(admin, 1, total_ms=5, status=Status.FAILED, error={"message": "no"})[0]
    make_ended(admin, 10, total_ms=100)
    assert lists.slowest(HOUR)[0].pk == slow.pk
    assert [row.pk for row in lists.failed(HOUR)] == [bad.pk]
    now = timezone.now()
    make_open(admin, lease_until=now + timedelta(minutes=1))
    parked = make_open(admin, parked_until=now + timedelta(minutes=1))
    make_open(admin, created_at=now - timedelta(minutes=2))
    make_open(admin, cancel_requested_at=now)
    call = {"call_id": "c", "name": "guarded", "attempt": 1, "expires_at": now + timedelta(minutes=1)}
    ToolEvent.objects.create(response=parked, status=ToolStatus.AWAITING_APPROVAL, **call)
    states = sorted(each.state for each in lists.open_responses())
    assert states == ["awaiting approval", "being cancelled", "queued", "running"]
    assert [event.name for event in lists.waiting_approvals()] == ["guarded"]
    key, _ = ApiKey.objects.issue("a phone", admin)
    make_open(admin, lease_until=now + timedelta(minutes=1), requested_by=f"key {key.pk}")
    assert lists.open_responses()[-1].asked_by == "key a phone"
    Response.objects.filter(requested_by=f"key {key.pk}").delete()
    work = current_work()
    assert (work.running, work.queued, work.awaiting_approval) == (1, 2, 1)
    assert 120 <= (work.oldest_queued_secs or 0) < 130


def test_the_doctor_minds_what_waits_for_a_process_and_not_for_a_turn(admin: User) -> None:
    now = timezone.now()
    running = make_open(admin, lease_until=now + timedelta(minutes=1), created_at=now - timedelta(minutes=5))
    queued = {"status": Status.QUEUED, "waits_for_turn": True, "created_at": now - timedelta(minutes=5)}
    waiting = Response.objects.create(
        owner=admin, session=running.session, turn=2, model="m", on_disconnect="continue", **queued
    )
    assert "waits for" not in " ".join(message.msg for message in check_database())
    Response.objects.filter(pk=waiting.pk).update(waits_for_turn=False)
    assert "a response waits for 3" in " ".join(message.msg for message in check_database())


def test_a_session_without_a_text_is_listed_by_its_id(admin: User, client: Client) -> None:
    """The input of an unstored response is nowhere, so its session has neither a title nor an opening."""
    row = make_open(admin, is_stored=False)
    client.force_login(admin)
    page = client.get("/").content.decode()
    assert ">None<" not in page
    assert page.count(f">{row.session.public_id}</a>") == 2


def test_the_dashboard_asks_as_often_whatever_is_stored(admin: User, client: Client) -> None:
    client.force_login(admin)
    for round_of_more in (1, 30):
        cache.clear()
        for number in range(round_of_more):
            made = make_ended(admin, 5, status=Status.FAILED, requested_by=f"key {number}")
            make_open(admin)
            ToolEvent.objects.create(
                response=made[0],
                call_id="c",
                name=f"tool {number}",
                attempt=1,
                status=ToolStatus.AWAITING_APPROVAL,
                expires_at=timezone.now() + timedelta(hours=1),
            )
            RuntimeProcess.objects.create(id=f"{round_of_more}-{number}", host="h", pid=1, pid_started="", role="web")
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/?window=1h").status_code == 200
        assert len(queries) == DASHBOARD_QUERIES, "\n".join(query["sql"][:200] for query in queries)
    client.get("/dashboard/past?window=1h")  # on a busy machine, the numbers of the page before are too old by now
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/dashboard/past?window=1h").status_code == 200
    assert len(queries) == 6  # the session, the user and two lists: the numbers are kept


def test_queries_follow_indexes_and_read_no_row_they_do_not_show(admin: User) -> None:
    for number in range(50):
        make_ended(admin, 100, minutes_ago=60 * number, model=f"m{number % 5}")
    make_open(admin)
    with collected_statistics():
        check_plans()
    assert processes() == []


def check_plans() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")  # a few rows are read faster without any index
    plans = {
        "response_ended": (lambda: numbers(HOUR), lambda: lists.slowest(HOUR)),
        "response_ended|response_by_status": (lambda: lists.failed(HOUR),),  # either is a look at few rows
        "response_open": (lists.open_responses, current_work),
        "session_by_activity": (lists.recent_sessions,),
        "tool_event_by_start|tool_event_newest": (lambda: numbers(HOUR),),
    }
    for index, looks in plans.items():
        for look in looks:
            cache.clear()
            assert re.search(index, explained(look)), index
    if connection.vendor == "sqlite":
        cache.clear()
        covered = explained(lambda: numbers(HOUR))
        assert covered.count("USING COVERING INDEX response_ended") == 3


def explained(look: Callable[[], Any]) -> str:
    """The plans of all queries that this makes."""
    with CaptureQueriesContext(connection) as queries:
        look()
    prefix = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    plans = []
    for query in queries:
        if re.match(r"SELECT", query["sql"]):
            with connection.cursor() as cursor:
                cursor.execute(prefix + query["sql"])
                plans += [str(row) for row in cursor.fetchall()]
    return "\n".join(plans)
