"""The operators' pages in a real browser."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import Operator, needs_chromium
from tests.support.checker import check_log
from tests.support.server import Server, eventually, script
from tests.support.staff import response_page
from tests.support.stored_rows import stored_rows

pytestmark = [needs_chromium, pytest.mark.any_database]
DENIED_AT = re.compile(r"It is denied at \d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.")
# How often the page is measured: each time may lay it out.
COUNT_LAYOUTS = """
const { get } = Object.getOwnPropertyDescriptor(Element.prototype, "scrollHeight");
window.layouts = 0;
Object.defineProperty(Element.prototype, "scrollHeight", {
  get() { window.layouts += 1; return get.call(this); },
});
"""
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    operator = Operator(browser, server).log_in()
    yield operator
    operator.leave()


def ask(server: Server, *steps: dict[str, Any], **fields: Any) -> str:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), "background": True, **fields})
    response_id: str = answer.json()["id"]
    return response_id


def test_the_dashboard_shows_what_runs_and_text_grows_until_it_is_cancelled(server: Server, operator: Operator) -> None:
    page = operator.goto("/")
    response_id = ask(
        server, {"say": "one two "}, {"gate": "browser-more"}, {"say": "three"}, {"gate": "browser-never"}
    )
    page.click(f"#watch-{response_id}")  # the list refreshes itself
    expect(page.locator("#log .text")).to_have_text("one two ")
    server.open_gate("browser-more")
    expect(page.locator("#log .text")).to_have_text("one two three", timeout=1000)
    page.click("#cancel")
    expect(page.locator("#status")).to_have_text("cancelled")
    assert server.ended(response_id)["status"] == "cancelled"
    assert stored_rows(server, "response", "cancel_requested_by", id=response_id) == [("operator admin",)]
    check_log(server, response_id)


def test_a_call_is_approved_and_its_card_says_so(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"say": "may I "}, {"call": "guarded", "arguments": {"text": "by the operator"}})
    page = operator.goto(f"/live/{response_id}")
    card = page.locator(".tool")
    expect(card.locator(".badge")).to_have_text("awaiting approval")
    expect(card.locator("pre").first).to_contain_text("by the operator")
    expect(card.locator(".decide")).to_contain_text(DENIED_AT)
    card.get_by_role("button", name="Allow once").click()
    expect(card.locator(".badge")).to_have_text("completed")
    expect(card.locator("pre").last).to_have_text("by the operator")
    expect(card).to_contain_text("by operator admin")
    assert server.ended(response_id)["status"] == "completed"
    assert stored_rows(server, "toolevent", "decided_by", response_id=response_id) == [("operator admin",)]


def test_the_live_view_has_no_button_that_fails(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"call": "guarded_once", "arguments": {"text": "one time"}})
    page = operator.goto(f"/live/{response_id}")
    buttons = page.locator(".tool").get_by_role("button")
    expect(buttons).to_have_text(["Allow once", "Deny"])
    buttons.last.click()
    assert server.ended(response_id)["status"] == "completed"


def test_a_tool_shows_its_time_and_its_progress(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"call": "effect", "arguments": {"text": "slow", "gate": "browser-tool"}})
    page = operator.goto(f"/live/{response_id}")
    card = page.locator(".tool")
    expect(card.locator(".badge")).to_have_text("running")
    expect(card.locator("h3 .num")).to_have_text(re.compile(r"[1-9]\.\d s"))
    server.open_gate("browser-tool")
    expect(card.locator(".badge")).to_have_text("completed")


def test_a_queued_turn_shows_what_it_waits_for_until_it_runs(server: Server, operator: Operator) -> None:
    first = ask(server, {"gate": "browser-first"})
    steps = ({"say": "second"}, {"gate": "browser-second"})
    page = operator.goto(f"/live/{ask(server, *steps, previous_response_id=first)}")
    expect(page.locator("#wait")).to_contain_text("turn 1 of its session")
    expect(page.locator("#wait a")).to_have_attribute("href", f"/live/{first}")
    server.open_gate("browser-first")
    expect(page.locator("#log .text")).to_have_text("second")
    expect(page.locator("#wait")).to_have_count(0)
    server.open_gate("browser-second")


def test_a_response_with_many_calls_is_laid_out_once_per_frame(server: Server, operator: Operator) -> None:
    calls = [{"call": "calculate", "arguments": {"expression": f"{number}+1"}} for number in range(60)]
    response_id = ask(server, *calls)
    server.ended(response_id)
    operator.page.add_init_script(COUNT_LAYOUTS)
    page = operator.goto(f"/live/{response_id}")
    expect(page.locator("#scrubber")).to_be_visible()
    expect(page.locator(".tool")).to_have_count(60)
    assert page.evaluate("window.layouts") < 60  # there are more than 300 events


def test_an_ended_response_can_be_wound_back_from_commit_to_commit(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"say": "first "}, {"gate": "browser-scrub"}, {"say": "second"})
    eventually(lambda: "first " in str(server.body(response_id)["output"]))
    server.open_gate("browser-scrub")
    server.ended(response_id)
    page = operator.goto(f"/live/{response_id}")
    text = page.locator("#log .text")
    expect(text).to_have_text("first second")
    scrub = page.locator("#scrub")
    scrub.focus()
    for _ in range(10):
        if text.count() == 0 or (text.text_content() or "").strip() == "first":
            break
        scrub.press("ArrowLeft")
    expect(text).to_have_text("first ")
    expect(page.locator("#status")).to_have_text("in progress")
    page.click("#play")
    expect(text).to_have_text("first second")
    expect(page.locator("#status")).to_have_text("completed")


def test_reading_goes_on_where_the_connection_broke(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"say": "before "}, {"gate": "browser-cut"}, {"say": "after"})
    page = operator.goto(f"/live/{response_id}")
    expect(page.locator("#log .text")).to_have_text("before ")
    operator.context.set_offline(True)
    server.open_gate("browser-cut")
    server.ended(response_id)
    operator.context.set_offline(False)
    expect(page.locator("#log .text")).to_have_text("before after")
    operator.console_errors[:] = [
        reply for reply in operator.console_errors if "ERR_INTERNET_DISCONNECTED" not in reply
    ]


def test_what_models_tools_and_clients_write_stays_text(server: Server, operator: Operator) -> None:
    steps = ({"think": HOSTILE}, {"say": HOSTILE}, {"call": "effect", "arguments": {"text": HOSTILE}})
    response_id = ask(server, *steps, metadata={"note": HOSTILE})
    ask(server, {"fail": HOSTILE})
    server.ended(response_id)
    page = operator.goto(f"/live/{response_id}")
    expect(page.locator("#log .from-assistant .text").first).to_have_text(HOSTILE)
    expect(page.locator("#log .reasoning .text")).to_have_text(HOSTILE)
    expect(page.locator("#log .tool pre").last).to_have_text(HOSTILE)
    expect(page.locator(".asked .text")).to_contain_text(HOSTILE)
    assert page.locator("#main img, #main script").count() == 0
    page = operator.goto("/?window=1h")
    expect(page.locator("#failed-title + .scroll")).to_contain_text(HOSTILE)
    assert page.locator("#main img").count() == 0


def test_the_admin_shows_what_others_wrote_as_text(server: Server, operator: Operator) -> None:
    response_id = ask(server, {"say": HOSTILE}, {"call": "effect", "arguments": {"text": HOSTILE}})
    server.ended(response_id)
    session = stored_rows(server, "response", "session_id", id=response_id)[0][0]
    event = stored_rows(server, "toolevent", "id", response_id=response_id)[0][0]
    rows = "/admin/responses_app"
    for path in (response_page(response_id), f"{rows}/session/{session}/change/", f"{rows}/toolevent/{event}/change/"):
        page = operator.goto(path)
        assert HOSTILE in str(page.locator("#content").text_content()), path
        assert page.locator("#content img[src=x], #content script:not([src])").count() == 0, path
    assert "<script>" in str(operator.goto(f"{rows}/response/").locator("#result_list").text_content())


def test_three_chained_turns_are_one_session_on_the_dashboard(server: Server, operator: Operator) -> None:
    client, previous = server.openai(), None
    for _ in range(3):
        previous = client.responses.create(model="hermes-agent", input="hello", previous_response_id=previous).id
    found = stored_rows(server, "response", "session_id", id=previous)
    page = operator.goto("/")
    row = page.locator(f"#session-{found[0][0]}")
    expect(row).to_have_count(1)
    expect(row.locator("td").nth(1)).to_have_text("3")


def test_the_playground_answers_and_survives_a_closed_tab(server: Server, operator: Operator) -> None:
    page = operator.goto("/chat?new")
    page.fill("#text", script({"say": "starting "}, {"gate": "browser-tab"}, {"say": "grown"}))
    page.press("#text", "Enter")
    expect(page.locator(".log .text")).to_have_text("starting ")
    expect(page.locator("aside [aria-current]")).to_have_count(1)
    page.reload()
    expect(page.locator(".log .text")).to_have_text("starting ")
    page.close()
    page = operator.open()
    operator.goto("/chat")
    expect(page.locator(".log .text")).to_have_text("starting ")
    server.open_gate("browser-tab")
    expect(page.locator(".log .text")).to_have_text("starting grown")
    page.fill("#text", "hello again")
    page.click("#send")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".turn").last.locator(".end .badge")).to_have_text("completed")
    page.reload()
    expect(page.locator(".turn .end .badge")).to_have_text(["completed", "completed"])
    asked = stored_rows(server, "response", "requested_by", order_by="created_at")
    assert asked[-1] == ("operator admin",)


def test_the_playground_shows_tools_and_can_stop(server: Server, operator: Operator) -> None:
    page = operator.goto("/chat?new")
    page.fill("#text", script({"call": "guarded", "arguments": {"text": "from the chat"}}))
    page.click("#send")
    expect(page.locator(".tool .decide")).to_contain_text(DENIED_AT)
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".tool pre").last).to_have_text("from the chat")
    expect(page.locator(".end .badge")).to_have_text("completed")
    page.fill("#text", script({"say": "endless "}, {"gate": "browser-stop"}))
    page.click("#send")
    expect(page.get_by_text("endless ", exact=True)).to_be_visible()
    page.click("#stop")
    expect(page.locator(".turn").last.locator(".end .badge")).to_have_text("cancelled")
    expect(page.locator("#send")).to_be_enabled()


def test_pages_fit_a_phone_and_can_be_used_with_the_keyboard(browser: Browser, server: Server) -> None:
    phone = Operator(browser, server, viewport={"width": 390, "height": 800}, color_scheme="dark").log_in()
    response_id = server.openai().responses.create(model="hermes-agent", input="x" * 500).id
    rows = "/admin/responses_app/response/"
    for path in ("/", f"/live/{response_id}", "/chat?new", "/admin/", rows, response_page(response_id), "/docs"):
        page = phone.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    expect(phone.goto("/chat?new").locator("#text")).to_be_focused()
    page = phone.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    phone.leave()


def test_a_hidden_page_requests_nothing_and_one_that_lost_its_server_says_so(
    server: Server, operator: Operator
) -> None:
    page = operator.goto("/")
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
    operator.requested.clear()
    page.wait_for_timeout(2500)  # longer than the refresh takes: that nothing happens can't be waited for
    parts = {url for url in operator.requested if "/static/" not in url}  # the icon may come late
    assert parts == set()
    with page.expect_request("**/dashboard/now"):
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    operator.context.set_offline(True)
    expect(page.locator("#stale")).to_be_visible()
    operator.context.set_offline(False)
    expect(page.locator("#stale")).to_be_hidden()
    operator.console_errors.clear()
