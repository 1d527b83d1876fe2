"""Lists of the admin: pages over everything, by date, key, error code and tool."""

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from responses_app.admin import dates, searching
from responses_app.models import ApiKey, Response, Session, ToolEvent
from responses_app.protocol.status import OnDisconnect, Status
from tests.support.query_plans import explained

pytestmark = pytest.mark.django_db
RESPONSES = "/admin/responses_app/response/"
SESSIONS = "/admin/responses_app/session/"
NEWEST = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def ada() -> User:
    return get_user_model().objects.create_superuser("ada", password="x")


@pytest.fixture
def browser(ada: User) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def store(owner: User, count: int, apart: timedelta) -> list[Response]:
    """Newest first. Two of a kind share their time, so that the id has to decide."""
    session = Session.objects.create(owner=owner, public_id="s", source="responses")
    rows = []
    for number in range(count):
        at = NEWEST - (number // 2) * apart
        rows.append(
            Response(
                id=f"resp_{count - number:032x}",
                owner=owner,
                session=session,
                turn=number + 1,
                model="m",
                status=Status.COMPLETED,
                on_disconnect=OnDisconnect.CONTINUE,
                created_at=at,
                finished_at=at,
            )
        )
    return Response.objects.bulk_create(rows)


def page(browser: Client, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def ids_on(text: str) -> list[str]:
    return re.findall(r'<span title="(resp_[0-9a-f]+)">', text)


def link(text: str, rel: str) -> str | None:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', text)
    return found and RESPONSES + html.unescape(found[1])


def pages(browser: Client, path: str | None, rel: str = "next") -> Iterator[str]:
    while path is not None:
        text = page(browser, path)
        yield text
        path = link(text, rel)


@pytest.mark.parametrize("order", ["", "?o=3"])  # the third column is the time
def test_pages_have_every_row_once_in_both_directions(browser: Client, ada: User, order: str) -> None:
    store(ada, 1205, timedelta(minutes=1))
    direction = "" if order else "-"
    expected = list(Response.objects.order_by(f"{direction}created_at", "-pk").values_list("pk", flat=True))
    forth = list(pages(browser, RESPONSES + order))
    assert [pk for text in forth for pk in ids_on(text)] == expected
    back = list(pages(browser, link(forth[-1], "prev"), "prev"))
    assert [ids_on(text) for text in reversed(back)] == [ids_on(text) for text in forth[:-1]]


def test_a_list_shows_no_count_beside_the_search_but_the_way_back(browser: Client, ada: User) -> None:
    """It counts 1,000 rows at most, so that number is not that of the results."""
    store(ada, 2, timedelta(minutes=1))
    text = page(browser, RESPONSES)
    assert "result" not in re.findall(r'id="changelist-search".*?</form>', text, re.DOTALL)[0]
    for limited in (f"{RESPONSES}?q=nothing", f"{RESPONSES}?status__exact=failed"):
        assert '<a class="small" href="?">Show all</a>' in page(browser, limited)


def test_a_search_on_a_later_page_finds_what_is_on_earlier_ones(browser: Client, ada: User) -> None:
    store(ada, 60, timedelta(minutes=1))
    second = link(page(browser, RESPONSES), "next")
    assert second is not None
    form = re.findall(r'id="changelist-search".*?</form>', page(browser, second), re.DOTALL)[0]
    assert 'name="after"' not in form


def test_the_choices_of_filters_are_words(browser: Client, ada: User) -> None:
    assert ">in progress</a>" in page(browser, RESPONSES)
    assert ">session chat</a>" in page(browser, SESSIONS)


def test_a_bad_cursor_leads_to_the_list_with_a_note(browser: Client, ada: User) -> None:
    store(ada, 2, timedelta(minutes=1))
    assert browser.get(RESPONSES, {"after": "yesterday,resp_1"}).status_code == 302


def test_dates_are_links_from_years_to_days(browser: Client, ada: User) -> None:
    rows = store(ada, 40, timedelta(days=20))
    text = page(browser, RESPONSES)
    assert "created_at__year=2025" in text
    assert "created_at__year=2026" in text
    of_2025 = page(browser, f"{RESPONSES}?created_at__year=2025")
    assert sorted(ids_on(of_2025)) == sorted(row.pk for row in rows if row.created_at.year == 2025)
    assert "created_at__month=12" in of_2025
    day = rows[2].created_at
    name = f"created_at__year={day.year}&created_at__month={day.month}"
    assert f"created_at__day={day.day}&" in page(browser, f"{RESPONSES}?{name}")
    one_day = page(browser, f"{RESPONSES}?{name}&created_at__day={day.day}")
    assert sorted(ids_on(one_day)) == sorted([rows[2].pk, rows[3].pk])


@pytest.mark.parametrize(
    "date",
    [
        {"year": "abc"},
        {"month": "abc"},
        {"year": "2025", "month": "13"},
        {"year": "2025", "day": "abc"},
        {"year": "2025", "month": "2", "day": "30"},
    ],
)
def test_a_bad_date_leads_to_the_list_with_a_note(browser: Client, ada: User, date: dict[str, str]) -> None:
    store(ada, 2, timedelta(minutes=1))
    query = {f"created_at__{part}": value for part, value in date.items()}
    assert browser.get(RESPONSES, query).status_code == 302


def test_a_list_can_be_limited_to_the_days_between_two(browser: Client, ada: User) -> None:
    rows = store(ada, 20, timedelta(days=1))
    text = page(browser, f"{RESPONSES}?created_at__from=2026-02-26&created_at__to=2026-02-27&owner=ada")
    assert sorted(ids_on(text)) == sorted(row.pk for row in rows if row.created_at.day in (26, 27))
    assert '<input type="hidden" name="owner" value="ada">' in text
    assert 'name="created_at__from" value="2026-02-26"' in text
    assert browser.get(RESPONSES, {"created_at__from": "soon"}).status_code == 302


def test_a_list_can_be_limited_to_a_key_an_error_and_a_tool(browser: Client, ada: User) -> None:
    by_key, with_error, with_tool, other = store(ada, 4, timedelta(days=1))
    key, _ = ApiKey.objects.issue("laptop", ada)
    Response.objects.filter(pk=by_key.pk).update(requested_by=f"key {key.pk}")
    failed = Response.objects.filter(pk=with_error.pk)
    failed.update(status=Status.FAILED, error={"code": "rate_limited"}, error_code="rate_limited")
    ToolEvent.objects.create(response=with_tool, call_id="c", name="calculate", attempt=1)
    for name, value, found in (
        ("requested_by", f"key {key.pk}", by_key),
        ("error_code", "rate_limited", with_error),
        ("tool", "calculate", with_tool),
    ):
        assert ids_on(page(browser, f"{RESPONSES}?{name}={value.replace(' ', '+')}")) == [found.pk]
        assert ids_on(page(browser, f"{RESPONSES}?{name}=nothing")) == []
    text = page(browser, RESPONSES)
    for choice in (">key laptop</a>", ">rate_limited</a>", ">calculate</a>"):
        assert choice in text
    assert other.pk in text


@pytest.mark.parametrize("many", [70, 100])
def test_the_tool_filter_finds_the_calls_of_a_tool_that_was_used_very_often(
    browser: Client, ada: User, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FEW", 60)
    monkeypatch.setattr(searching, "MANY", many)
    rows = store(ada, 90, timedelta(minutes=1))
    calls = [ToolEvent(response=row, call_id="c", name="calculate", attempt=1) for row in rows[:-1]]
    ToolEvent.objects.bulk_create(calls)
    assert ids_on(page(browser, f"{RESPONSES}?tool=calculate")) == [row.pk for row in rows[:50]]


@pytest.mark.parametrize(("few", "way"), [(1000, "(id=?)"), (10, "response_newest (created_at<?)")])
def test_the_list_of_those_that_ended_until_a_day_has_all_of_them(
    browser: Client, ada: User, few: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found first and sorted, or on the way through the list, which begins at that day."""
    monkeypatch.setattr(dates, "FEW", few)
    rows = store(ada, 120, timedelta(hours=12))
    with explained("responses_app_response") as plan:
        found = ids_on(page(browser, f"{RESPONSES}?finished_at__to=2026-02-20"))
    until = [row.pk for row in rows if row.created_at < datetime(2026, 2, 21, tzinfo=UTC)]
    assert found == until[:50]
    if connection.vendor == "sqlite":
        assert way in "\n".join(plan)
