"""Calls that wait for approval, in a real browser: what is shown of them is what they are."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.approvals import decide, until_waiting
from tests.support.browser import Operator, needs_chromium
from tests.support.scripted_requests import call, start_background
from tests.support.server import Server, eventually, script
from tests.support.stored_rows import stored_rows

pytestmark = [needs_chromium, pytest.mark.any_database]
TOOL_EVENTS = "/admin/responses_app/toolevent/"
# Shown as it is, the end of this text would be read before its beginning.
REORDERED = "echo \u202e# fr- mr\u202c \u2066x\u2069 <img src=x onerror=alert(1)>"
LOOKS_MS = 4000  # the page looks every 1.5 s
CONTROLS = ("\u202e", "\u202c", "\u2066", "\u2069")


@pytest.fixture(scope="module")
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    operator = Operator(browser, server).log_in()
    yield operator
    operator.leave()


def test_no_character_changes_the_order_of_the_arguments(server: Server, operator: Operator) -> None:
    response_id = start_background(server, call("guarded", text=REORDERED))
    until_waiting(server, response_id)
    [(event,)] = stored_rows(server, "toolevent", "id", response_id=response_id)
    for path, place in (
        (f"/live/{response_id}", ".tool pre"),
        ("/", f"#approval-{event} .arguments"),
        (f"{TOOL_EVENTS}{event}/change/", ".field-arguments_shown pre"),
    ):
        shown = operator.goto(path).locator(place).first
        expect(shown).to_contain_text("echo \\u202e# fr- mr\\u202c \\u2066x\\u2069 <img")
        text = shown.inner_text()
        assert not any(control in text for control in CONTROLS), path
    decide(server, response_id, "deny")


def test_the_playground_asks_again_where_a_look_for_approvals_failed(server: Server, operator: Operator) -> None:
    page = operator.goto("/chat?new")
    failed: list[str] = []

    def fail(route: Route) -> None:
        failed.append(route.request.url)
        route.abort()

    page.route("**/approval", fail)
    page.fill("#text", script(call("guarded", text="after a failure")))
    page.click("#send")
    eventually(lambda: stored_rows(server, "toolevent", "id", status="awaiting_approval"))
    failed.clear()
    page.wait_for_timeout(LOOKS_MS)
    assert failed
    page.unroute("**/approval")
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".end .badge")).to_have_text("completed")
    operator.console_errors[:] = [line for line in operator.console_errors if "net::ERR_" not in line]
