"""Addresses of the admin as people mistype them, and as hostile links have them: never a 500."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from responses_app.admin.dates import _shown_time
from responses_app.models import Conversation, Response, Session, ToolEvent
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = pytest.mark.django_db
APP = "/admin/responses_app/"
LISTS = ("response", "session", "toolevent", "conversation")
NUMBERED = ("session", "toolevent", "approvalgrant", "apikey", "note", "profile", "platformchat")
NOT_NUMBERS = ("9" * 30, "9" * 5000, "-1", "1e9", "\N{SUPERSCRIPT TWO}", "0x1")
TERMS = (
    "resp_\ud7ff",
    "resp_\U0010ffff",
    "resp_0\x00",
    "conv_\x00",
    "call_\x00",
    "'; DROP TABLE responses_app_response; --",
    '"AND" OR NEAR(',
    "a" * 3000,
    "ß" * 200,
    "%_\\",
    "\u202e\u0645\u0631\u062d\u0628\u0627",
    "9" * 400,
)
DATES = (
    {"created_at__to": "9999-12-31"},
    {"created_at__from": "0001-01-01"},
    {"created_at__from": "2026-13-01"},
    {"finished_at__lt": "9999-12-31T23:59:59+00:00"},
    {"finished_at__gte": "0001-01-01T00:00:00+14:00"},
    {"finished_at__to": "9999-12-31"},
    {"created_at__year": "99999"},
    {"created_at__year": "0"},
    {"created_at__year": "9" * 30},
    {"created_at__year": "9999", "created_at__month": "12"},
    {"created_at__year": "2026", "created_at__month": "0"},
    {"created_at__year": "9999", "created_at__month": "12", "created_at__day": "31"},
    {"after": "9999-12-31T23:59:59,resp_1"},
    {"before": ","},
    {"after": "2026-01-01T00:00:00," + "9" * 30},
    {"after": "\x00,\x00"},
    {"o": "99"},
    {"o": "-99.x"},
    {"p": "x"},
    {"e": "1"},
)


@pytest.fixture
def browser() -> Client:
    ada = get_user_model().objects.create_superuser("ada", password="x")
    now = timezone.now()
    session = Session.objects.create(owner=ada, public_id="s", source="responses", last_active_at=now)
    row = Response.objects.create(
        id=f"resp_{1:032x}",
        owner=ada,
        session=session,
        turn=1,
        model="m",
        status=Status.COMPLETED,
        on_disconnect=OnDisconnect.CONTINUE,
        created_at=now,
        finished_at=now,
    )
    ToolEvent.objects.create(response=row, call_id="c", name="t", attempt=1)
    Conversation.objects.create(owner=ada, session=session)
    client = Client(raise_request_exception=False)
    client.force_login(ada)
    return client


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("term", TERMS, ids=ascii)
def test_any_words_can_be_searched(browser: Client, name: str, term: str) -> None:
    assert browser.get(f"{APP}{name}/", {"q": term}).status_code == 200


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("query", DATES, ids=str)
def test_odd_parameters_lead_to_a_list(browser: Client, name: str, query: dict[str, str]) -> None:
    if name == "session":
        query = {key.replace("created_at", "last_active_at"): value for key, value in query.items()}
    if name == "toolevent":
        query = {key.replace("created_at", "started_at"): value for key, value in query.items()}
    answer = browser.get(f"{APP}{name}/", query)
    assert answer.status_code in (200, 302)


@pytest.mark.parametrize("name", NUMBERED)
@pytest.mark.parametrize("number", NOT_NUMBERS, ids=lambda number: ascii(number)[:20])
def test_an_id_that_is_no_number_leads_to_the_start_page(browser: Client, name: str, number: str) -> None:
    answer = browser.get(f"{APP}{name}/{number}/change/")
    assert answer.status_code == 302


FILTERED = ("status__exact", "work", "kind__exact", "model", "owner", "requested_by", "error_code", "tool")


@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize("value", ["\x00", "9" * 400, "'", "\U0001f600", ""], ids=ascii)
def test_a_filter_takes_any_value(browser: Client, name: str, value: str) -> None:
    answer = browser.get(f"{APP}response/", {name: value})
    assert answer.status_code in (200, 302)


@pytest.mark.parametrize("given", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_of_utc_is_shown_as_it_was_given(given: str) -> None:
    """PostgreSQL's driver takes it, so that the list is shown; SQLite's does not."""
    assert _shown_time(given) == given


@pytest.mark.parametrize("name", ["apikey", "profile"])
@pytest.mark.parametrize("query", [{"created_at__year": "9" * 30}, {"created_at__gte": "0001-01-01T00:00:00+14:00"}])
def test_odd_parameters_lead_to_short_lists_too(browser: Client, name: str, query: dict[str, str]) -> None:
    answer = browser.get(f"{APP}{name}/", query, follow=True)
    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["\0", "9" * 40, "a/b", "' OR 1=1"])
@pytest.mark.parametrize(
    ("name", "action"),
    [("apikey", "revoke"), ("platformchat", "pause"), ("toolevent", "allow_once"), ("session", "fork")],
)
def test_an_action_on_a_key_of_no_row_does_nothing(browser: Client, name: str, action: str, key: str) -> None:
    form = {"action": action, "_selected_action": key}
    answer = browser.post(f"{APP}{name}/", form, follow=True)
    assert answer.status_code == 200
    assert "Nothing was done" in answer.content.decode()
