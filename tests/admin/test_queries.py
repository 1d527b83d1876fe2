"""The admin at 5,000 rows: an index for every list, no counts of whole tables, no query per row."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from gateway_app.models import RuntimeProcess
from responses_app.models import (
    ApiKey,
    ApprovalGrant,
    Conversation,
    IdempotencyKey,
    InboxMessage,
    InputItem,
    Note,
    NoteKind,
    OutboxMessage,
    OutboxStatus,
    PlatformChat,
    Profile,
    Response,
    Session,
    ToolEvent,
)
from responses_app.protocol.status import OnDisconnect, Status
from tests.support.query_plans import collected_statistics

pytestmark = pytest.mark.django_db
ROWS = 5000
APP = "/admin/responses_app/"


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Once for all tests here: filling the tables takes longer than any of them."""
    with django_db_blocker.unblock():
        fill()
        with collected_statistics():
            yield
        get_user_model().objects.all().delete()
        Profile.objects.all().delete()
        RuntimeProcess.objects.all().delete()
        PlatformChat.objects.all().delete()


@pytest.fixture
def browser(stored: None) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get(username="ada"))
    return client


def fill() -> None:
    users = get_user_model().objects
    owner = users.create_superuser("ada", password="x")
    users.bulk_create(get_user_model()(username=f"user{number}") for number in range(20))
    now = timezone.now()
    sessions = Session.objects.bulk_create(
        Session(owner=owner, public_id=f"s{n}", source="responses", last_active_at=now - timedelta(minutes=n))
        for n in range(ROWS // 5)
    )
    ages = [now - timedelta(minutes=number) for number in range(ROWS)]
    responses = Response.objects.bulk_create(
        Response(
            id=f"resp_{number:032x}",
            owner=owner,
            session=sessions[number // 5],
            turn=number % 5 + 1,
            model="m",
            requested_by=f"key {number % 100}",
            status=Status.FAILED if number % 500 == 7 else Status.COMPLETED,
            error_code=f"code {number}" if number % 500 == 7 else None,
            on_disconnect=OnDisconnect.CONTINUE,
            created_at=ages[number],
            accessed_at=ages[number],
            output=[],
            started_at=ages[number],
            finished_at=ages[number],
        )
        for number in range(ROWS)
    )
    message = {"type": "message", "role": "user", "content": "hello there"}
    InputItem.objects.bulk_create(InputItem(response=row, position=0, item=message) for row in responses)
    ToolEvent.objects.bulk_create(
        ToolEvent(response=row, call_id="c", name="t", attempt=1, started_at=row.created_at) for row in responses
    )
    Conversation.objects.bulk_create(
        Conversation(owner=owner, session=session, created_at=session.last_active_at) for session in sessions
    )
    IdempotencyKey.objects.bulk_create(
        IdempotencyKey(owner=owner, key=f"k{n}", digest="d", response=row, expires_at=now + timedelta(minutes=n))
        for n, row in enumerate(responses)
    )
    fill_messages(responses)
    fill_small(owner, now)


def fill_messages(responses: list[Response]) -> None:
    chats = PlatformChat.objects.bulk_create(PlatformChat(platform="fake", chat_id=f"chat{n}") for n in range(60))
    InboxMessage.objects.bulk_create(
        InboxMessage(
            platform="fake",
            message_id=f"m{n}",
            chat=chats[n % 60],
            sender_id="s",
            sent_at=row.created_at,
            received_at=row.created_at,
            closed_at=row.created_at,
            response=row,
        )
        for n, row in enumerate(responses)
    )
    OutboxMessage.objects.bulk_create(
        OutboxMessage(
            platform="fake",
            key=f"key{n}",
            chat=chats[n % 60],
            status=OutboxStatus.DEAD if n % 500 == 7 else OutboxStatus.SENT,
            created_at=row.created_at,
            closed_at=row.created_at,
            response=row,
        )
        for n, row in enumerate(responses)
    )


def fill_small(owner: User, now: datetime) -> None:
    """What there are few of, and yet no query for each."""
    ApiKey.objects.bulk_create(ApiKey(name=f"key {n}", owner=owner, prefix="hs-", digest=f"{n}") for n in range(60))
    Profile.objects.bulk_create(Profile(name=f"profile {n}") for n in range(60))
    ApprovalGrant.objects.bulk_create(
        ApprovalGrant(owner=owner, name="terminal", arguments_digest=f"{n}", granted_by="operator ada")
        for n in range(60)
    )
    RuntimeProcess.objects.bulk_create(
        RuntimeProcess(id=f"{n}", host="h", pid=n, pid_started="1", role="web", heartbeat_at=now) for n in range(60)
    )
    Note.objects.bulk_create(Note(owner=owner, kind=NoteKind.MEMORY, text=f"note {n}") for n in range(60))


def queries(browser: Client, path: str, **params: Any) -> list[str]:
    browser.get(path, params)  # content types and the like are looked up once
    with CaptureQueriesContext(connection) as captured:
        answer = browser.get(path, params)
    assert answer.status_code == 200, path
    return [query["sql"] for query in captured.captured_queries]


def explained(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            ("EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN ") + sql.replace("%", "%%")
        )
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


LISTS = [
    ("response", {}, "response_newest"),
    ("response", {"status__exact": "failed"}, "response_by_status"),
    ("response", {"owner": "user3"}, "owner"),
    ("response", {"kind__exact": "platform"}, "response_by_kind"),
    ("response", {"model": "another"}, "response_by_model"),
    ("response", {"requested_by": "key 7"}, "response_by_key"),
    ("response", {"error_code": "none"}, "response_by_error"),
    ("response", {"created_at__from": "2031-05-17"}, "response_newest"),
    ("response", {"q": "s17"}, ""),
    ("session", {"q": "s17"}, ""),
    ("response", {"q": f"resp_{77:032x}"}, ""),
    ("session", {}, "session_by_activity"),
    ("toolevent", {}, "tool_event_newest"),
    ("toolevent", {"q": f"resp_{77:032x}"}, ""),
    ("conversation", {}, "conversation_newest"),
    ("idempotencykey", {}, "idempotency_expiry"),
    ("inboxmessage", {}, "inbox_newest"),
    ("inboxmessage", {"q": "m77"}, ""),
    ("outboxmessage", {}, "outbox_newest"),
    ("outboxmessage", {"status__exact": "dead"}, "outbox_by_status"),
    ("outboxmessage", {"q": "key77"}, ""),
    ("idempotencykey", {"q": f"resp_{77:032x}"}, ""),
]
SMALL_LISTS = (
    "responses_app/platformchat",
    "responses_app/apikey",
    "responses_app/profile",
    "responses_app/approvalgrant",
    "responses_app/note",
    "gateway_app/runtimeprocess",
)
MODELS = (
    *(Response, Session, ToolEvent, Conversation, IdempotencyKey),
    *(ApiKey, Profile, ApprovalGrant, RuntimeProcess, Note),
    *(PlatformChat, InboxMessage, OutboxMessage),
)


@pytest.mark.parametrize(("name", "params", "index"), LISTS)
def test_lists_use_an_index_and_a_fixed_number_of_queries(
    browser: Client, name: str, params: dict[str, str], index: str
) -> None:
    asked = queries(browser, f"{APP}{name}/", **params)
    assert len(asked) <= 18, asked
    assert not [sql for sql in asked if "COUNT(" in sql]
    table = f'FROM "responses_app_{name}"'
    page = [sql for sql in asked if table in sql and "LIMIT 51" in sql][-1]
    plan = explained(page)
    assert index in plan, plan
    sweeps = f"SCAN responses_app_{name}" if "q" in params else f"SCAN responses_app_{name}\n"
    assert sweeps not in plan + "\n", plan
    assert f"Seq Scan on responses_app_{name} " not in plan, plan


@pytest.mark.parametrize("name", SMALL_LISTS)
def test_small_lists_cost_a_fixed_number_of_queries(browser: Client, name: str) -> None:
    assert len(queries(browser, f"/admin/{name}/")) <= 10


@pytest.mark.parametrize("model", MODELS)
def test_every_detail_page_costs_a_fixed_number_of_queries(browser: Client, model: type[Model]) -> None:
    row = model._default_manager.order_by("pk").first()
    assert row is not None
    page = f"/admin/{model._meta.app_label}/{model._meta.model_name}/{quote(row.pk)}/change/"
    assert len(queries(browser, page)) <= 18


def test_every_model_in_the_admin_is_counted_here() -> None:
    theirs = {"django.contrib.auth.models"}
    assert {model for model in site._registry if model.__module__ not in theirs} == set(MODELS)


def test_a_session_page_costs_the_same_for_one_turn_and_for_many(browser: Client) -> None:
    many = Session.objects.get(public_id="s3")
    few = Session.objects.get(public_id="s4")
    Response.objects.filter(session=few, turn__gt=1).delete()
    long, short = (queries(browser, f"{APP}session/{session.pk}/change/") for session in (many, few))
    assert len(long) == len(short) <= 18, long


def test_a_response_page_costs_a_fixed_number_of_queries(browser: Client) -> None:
    assert len(queries(browser, f"{APP}response/resp_5F{77:032x}/change/")) <= 18


def test_text_is_found_among_the_newest_without_reading_the_rest(browser: Client) -> None:
    asked = queries(browser, f"{APP}response/", q="HELLO there")
    most = 16
    if connection.vendor == "postgresql":
        most += 4  # a transaction in which the planner uses the index of words
    assert len(asked) <= most, asked
    assert not [sql for sql in asked if "COUNT(" in sql]
