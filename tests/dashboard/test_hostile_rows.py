"""Names and titles that are very long, or that change the order of the text around them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from responses_app.models.segments import FORMAT_VERSION
from tests.support.approvals import decide, until_waiting
from tests.support.browser import Operator, needs_chromium
from tests.support.scripted_requests import call, start_background
from tests.support.server import Server
from tests.support.staff import RESPONSES
from tests.support.stored_rows import session_of, stored_rows, update_rows

pytestmark = [needs_chromium, pytest.mark.any_database]
TOOL_EVENTS = "/admin/responses_app/toolevent/"
LONG = "n" * 180
REVERSED = "\u202etitle \u05e9\u05dc\u05d5\u05dd"
# Whether the words stand on the page in the order of their letters.
READS_FORWARD = """
(words) => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(words);
    if (at < 0) continue;
    const [first, last] = [at, at + words.length - 1].map((place) => {
      const range = document.createRange();
      range.setStart(walker.currentNode, place);
      range.setEnd(walker.currentNode, place + 1);
      return range.getBoundingClientRect();
    });
    return first.left < last.left;
  }
  return null;
}
"""


@pytest.fixture(scope="module")
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    operator = Operator(browser, server, viewport={"width": 1280, "height": 900}).log_in()
    yield operator
    operator.leave()


@pytest.fixture(scope="module")
def waiting(server: Server) -> Iterator[str]:
    response_id = start_background(server, call("guarded", text="x"))
    until_waiting(server, response_id)
    update_rows(server, "response", {"model": LONG}, id=response_id)
    update_rows(server, "session", {"title": REVERSED}, id=session_of(server, response_id))
    yield response_id
    decide(server, response_id, "deny")


def test_a_title_changes_nothing_around_it(operator: Operator, waiting: str) -> None:
    page = operator.goto(f"/live/{waiting}")
    assert page.evaluate(READS_FORWARD, ", turn 1") is True


def test_long_names_leave_room_for_the_other_columns(server: Server, operator: Operator, waiting: str) -> None:
    page = operator.goto("/")
    row = page.locator(f"#open-{waiting}")
    expect(row).to_be_visible()
    assert row.evaluate("row => row.offsetHeight") < 150
    [(name,)] = stored_rows(server, "toolevent", "name", response_id=waiting)
    update_rows(server, "toolevent", {"name": LONG}, response_id=waiting)
    for path in (TOOL_EVENTS, RESPONSES):
        assert_columns_are_in_sight(operator.goto(path))
    update_rows(server, "toolevent", {"name": name}, response_id=waiting)


def assert_columns_are_in_sight(page: Page) -> None:
    inner, outer = page.evaluate(
        "[document.getElementById('result_list').scrollWidth, document.querySelector('.results').clientWidth]"
    )
    assert inner <= 1.1 * outer


def test_a_log_in_a_newer_format_is_not_waited_for(server: Server, operator: Operator, waiting: str) -> None:
    body = server.openai().responses.create(model="hermes-agent", input="hello")
    update_rows(server, "eventsegment", {"format_version": FORMAT_VERSION + 1}, response_id=body.id)
    page = operator.goto(f"/live/{body.id}")
    expect(page.locator("#trouble")).to_contain_text("in the format of a newer version")
    expect(page.locator("#connection")).to_be_hidden()
    operator.console_errors[:] = [line for line in operator.console_errors if "503" not in line]
    update_rows(server, "eventsegment", {"format_version": FORMAT_VERSION}, response_id=body.id)
