"""The numbers of the dashboard lead to the lists of the admin that show what they count."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from responses_app.admin import dates
from responses_app.models import ApiKey, Response, Session, ToolEvent, ToolStatus
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_cache")]
LINK = re.compile(r'<a [^>]*href="(/admin/[^"]*\?[^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
NUMBER = re.compile(r"(?:\S+: )?(\d+)(?: failed)?")
COUNT = re.compile(r"(\d+) (?:responses?|tool events?|runtime process(?:es)?)\s*</nav>")


def store(owner: User, count: int, status: str, **fields: Any) -> list[Response]:
    session = Session.objects.opened(owner.pk, None, "responses")
    at = timezone.now() - timedelta(minutes=5)
    known: dict[str, Any] = {
        "created_at": at - timedelta(hours=2),
        "model": "m",
        "requested_by": "key root",
    }
    if status not in (Status.QUEUED, Status.IN_PROGRESS):
        known |= {"finished_at": at, "total_ms": 10, "is_log_merged": True}
    known |= {
        "owner": owner,
        "session": session,
        "status": status,
        "on_disconnect": OnDisconnect.CONTINUE,
    }
    rows = [Response(turn=turn, **(known | fields)) for turn in range(1, count + 1)]
    return Response.objects.bulk_create(rows)


def call(response: Response, name: str, status: ToolStatus, **fields: Any) -> None:
    call_id = f"call_{ToolEvent.objects.count()}"
    ToolEvent.objects.create(response=response, call_id=call_id, name=name, attempt=1, status=status, **fields)


def fill(admin_user: User) -> None:
    soon = timezone.now() + timedelta(minutes=5)
    key, _ = ApiKey.objects.issue("laptop", admin_user)
    made = store(admin_user, 3, Status.COMPLETED, model="a & b", requested_by=f"key {key.pk}")
    store(admin_user, 2, Status.FAILED, model="a & b", requested_by="operator ada", error_code="server_error")
    store(admin_user, 4, Status.COMPLETED, finished_at=timezone.now() - timedelta(days=3))
    bob = User.objects.create_user("bob")
    store(admin_user, 1, Status.IN_PROGRESS, lease_until=soon)
    store(admin_user, 2, Status.QUEUED)
    store(bob, 3, Status.QUEUED)
    [parked] = store(admin_user, 1, Status.IN_PROGRESS, parked_until=soon)
    call(parked, "guarded", ToolStatus.AWAITING_APPROVAL, expires_at=soon)
    call(
        parked,
        "late",
        ToolStatus.AWAITING_APPROVAL,
        expires_at=timezone.now() - timedelta(minutes=1),
    )
    for status in (ToolStatus.COMPLETED, ToolStatus.FAILED, ToolStatus.INTERRUPTED):
        call(made[0], "terminal", status)
    for number, role in enumerate(("web", "worker", "pages")):
        RuntimeProcess.objects.create(id=f"p{number}", host="h", pid=number + 1, pid_started="", role=role)
    RuntimeProcess.objects.create(id="old", host="h", pid=9, pid_started="", role="web", state=ProcessState.STOPPED)


def numbered_links(page: str) -> list[tuple[str, int]]:
    """The links whose text is a number, with it."""
    found = []
    for address, content in LINK.findall(page):
        number = NUMBER.fullmatch(re.sub(r"<[^>]+>", "", content).strip())
        if number is not None:
            found.append((html.unescape(address), int(number[1])))
    return found


def counted(admin_client: Client, address: str) -> int:
    answer = admin_client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    found = COUNT.search(answer.content.decode())
    assert found is not None, address
    return int(found[1])


@pytest.mark.parametrize("window", ["1h", "24h", "30d"])
def test_a_list_has_as_many_rows_as_the_number_that_leads_to_it(
    admin_client: Client,
    admin_user: User,
    window: str,
) -> None:
    fill(admin_user)
    links = numbered_links(admin_client.get("/", {"window": window}).content.decode())
    assert len(links) >= 16
    for address, number in links:
        assert counted(admin_client, address) == number, address
    assert {address.partition("?")[0] for address, _ in links} == {
        "/admin/responses_app/response/",
        "/admin/responses_app/toolevent/",
        "/admin/gateway_app/runtimeprocess/",
    }


def test_every_kind_of_number_has_a_link(admin_client: Client, admin_user: User) -> None:
    fill(admin_user)
    links = dict(numbered_links(admin_client.get("/?window=1h").content.decode()))
    numbers = {re.sub(r"(__gte|__lt)=[^&]*", r"\1", address.partition("?")[2]): n for address, n in links.items()}
    span = "finished_at__gte&finished_at__lt"
    calls = "started_at__gte&started_at__lt"
    assert numbers["work=running"] == 1
    assert numbers["work=queued"] == 5
    assert numbers["work=queued&owner=bob"] == 3
    assert numbers["waits=yes"] == 1
    assert numbers[span] == 5
    assert numbers[f"status__exact=failed&{span}"] == 2
    assert numbers[f"model=a+%26+b&{span}"] == 5
    assert numbers[f"model=a+%26+b&{span}&status__exact=failed"] == 2
    assert numbers[f"requested_by=operator+ada&{span}"] == 2
    assert numbers[f"name=terminal&{calls}"] == 3
    assert numbers[f"name=terminal&{calls}&status__in=failed%2Cinterrupted"] == 2
    assert numbers["state__exact=running&role__in=web%2Cworker"] == 2


def test_a_number_keeps_its_list_while_more_responses_end(admin_client: Client, admin_user: User) -> None:
    store(admin_user, 2, Status.COMPLETED)
    page = admin_client.get("/?window=24h").content.decode()
    store(admin_user, 3, Status.COMPLETED, finished_at=timezone.now())
    again = admin_client.get("/?window=24h").content.decode()  # the numbers are kept for some seconds
    for text in (page, again):
        [(address, number)] = [link for link in numbered_links(text) if re.search(r"\?finished_at", link[0])][:1]
        assert (number, counted(admin_client, address)) == (2, 2)


def test_the_list_shows_the_times_between_which_its_rows_ended(admin_client: Client, admin_user: User) -> None:
    store(admin_user, 1, Status.COMPLETED)
    [(address, _), *_] = numbered_links(admin_client.get("/?window=1h").content.decode())[4:]
    text = admin_client.get(address).content.decode()
    selected = re.findall(r'<li class="selected">\s*<a[^>]*>(.*?)</a>', text, re.DOTALL)
    assert [choice for choice in selected if choice.count("<time") == 2], selected


def test_a_time_that_can_not_be_read_leads_to_the_list_with_a_note(
    admin_client: Client,
    admin_user: User,
) -> None:
    assert admin_client.get("/admin/responses_app/response/", {"finished_at__gte": "soon"}).status_code == 302


def test_staff_without_the_permission_for_a_list_get_no_link_to_it() -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_response"))
    fill(viewer)
    client = Client()
    client.force_login(viewer)
    page = client.get("/?window=1h").content.decode()
    assert "/admin/responses_app/response/?" in page
    assert "/admin/responses_app/toolevent/" not in page
    assert "/admin/gateway_app/" not in page


def test_many_rows_that_ended_then_are_listed_in_the_order_of_the_list(
    admin_client: Client,
    admin_user: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than the filter finds first and sorts."""
    monkeypatch.setattr(dates, "FEW", 60)
    now = timezone.now()
    rows = store(admin_user, 120, Status.COMPLETED)
    for number, row in enumerate(rows):
        row.created_at = now - timedelta(minutes=number)
        row.finished_at = now if number < 70 else now - timedelta(days=9)
    Response.objects.bulk_update(rows, ["created_at", "finished_at"])
    page = "/admin/responses_app/response/"
    day = f"{now:%Y-%m-%d}"
    for limits in (
        {
            "finished_at__gte": now.isoformat(),
            "finished_at__lt": (now + timedelta(hours=1)).isoformat(),
        },
        {"finished_at__from": day, "finished_at__to": day},
    ):
        text = admin_client.get(page, limits).content.decode()
        shown = re.findall(r'<span title="(resp_[0-9a-f]+)">', text)
        assert shown == [row.pk for row in rows[:50]], limits
    text = admin_client.get(page, {"finished_at__lt": now.isoformat(), "owner": "admin"}).content.decode()
    assert len(re.findall(r'<span title="(resp_[0-9a-f]+)">', text)) == 50
