"""Pages in a real browser whose server goes away, and pages that show what another one began."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.browser import Operator, needs_chromium
from tests.support.server import Server, eventually, script, text
from tests.support.staff import RESPONSES, logged_in
from tests.support.stored_rows import stored_rows

pytestmark = [needs_chromium, pytest.mark.any_database]


@pytest.fixture(scope="module")
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    operator = Operator(browser, server).log_in()
    yield operator
    operator.leave()


def ask_in(page: Page, *steps: dict[str, str]) -> None:
    page.fill("#text", script(*steps))
    page.press("#text", "Enter")


def questions(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".turn .from-user .text").all_text_contents()]


def answers(page: Page) -> list[str]:
    shown = page.locator(".turn .from-assistant .text")
    return [text.strip() for text in shown.all_text_contents()]


def test_the_live_view_reconnects_to_a_server_that_was_killed(
    browser: Browser, make_server: Callable[..., Server]
) -> None:
    server = make_server()
    reader = Operator(browser, server).log_in()
    asked = script({"say": "one "}, {"gate": "back"}, {"say": "two"}, {"say": " three"})
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": asked, "background": True})
    response_id = answer.json()["id"]
    page = reader.goto(f"/live/{response_id}")
    expect(page.locator("#log .text")).to_have_text("one ")
    expect(page.get_by_text("Reconnecting")).to_have_count(0)
    server.kill()
    expect(page.get_by_role("status").filter(has_text="Reconnecting")).to_be_visible()
    server.start()
    expect(page.locator("#connection")).to_be_hidden()
    server.open_gate("back")
    stored = text(server.ended(response_id))
    expect(page.locator("#status")).to_have_text("completed")
    expect(page.locator("#scrubber")).to_be_visible()
    shown = page.locator("#log .text")
    eventually(lambda: "".join(shown.all_text_contents()).split() == stored.split())
    expect(page.locator("#log .end")).to_have_count(1)
    reader.console_errors[:] = [line for line in reader.console_errors if "net::ERR_" not in line]
    reader.leave()


def test_a_second_tab_shows_running_turns_of_the_first(server: Server, operator: Operator) -> None:
    first = operator.goto("/chat?new")
    ask_in(first, {"say": "first"})
    expect(first.locator(".end .badge")).to_have_text("completed")
    second = operator.open()
    second.goto(first.url)
    expect(second.locator(".end .badge")).to_have_text("completed")
    ask_in(first, {"say": "grow"}, {"gate": "tabs-grow"}, {"say": "n"})
    expect(second.locator(".from-assistant .text").last).to_have_text("grow")
    expect(second.locator("#send")).to_be_disabled()
    with server.http() as client:
        asked = {"input": script({"say": "waited"}), "background": True}
        headers = {"X-Hermes-Session-Id": first.url.rsplit("/", 1)[1]}
        client.post("/v1/responses", json=asked, headers=headers)
    expect(second.get_by_text("Queued: the live view shows what it waits for.")).to_be_visible()
    server.open_gate("tabs-grow")
    expect(second.locator(".from-assistant .text")).to_have_text(["first", "grown", "waited"])
    expect(second.locator(".end .badge")).to_have_text(["completed"] * 3)
    expect(second.locator(".queued")).to_have_count(0)
    ask_in(second, {"say": "back"})
    expect(first.locator(".from-assistant .text")).to_have_text(["first", "grown", "waited", "back"])
    assert questions(first) == questions(second)
    second.close()


def test_two_tabs_that_send_at_once_show_one_order(server: Server, operator: Operator) -> None:
    first = operator.open()
    first.goto(f"{server.url}/chat?new")
    ask_in(first, {"say": "begin"})
    expect(first.locator(".end .badge")).to_have_text("completed")
    second = operator.open()
    second.goto(first.url)
    expect(second.locator(".end .badge")).to_have_text("completed")
    for page, name in ((first, "A"), (second, "B")):
        page.fill("#text", script({"say": name}))
    for page in (first, second):
        page.evaluate("document.getElementById('ask').requestSubmit()")
    for page in (first, second):
        expect(page.locator(".end .badge")).to_have_text(["completed"] * 3)
        expect(page.locator("#send")).to_be_enabled()
    session = first.url.rsplit("/", 1)[1]
    [(session_id,)] = stored_rows(server, "session", "id", public_id=session)
    stored = stored_rows(server, "response", "id", order_by="turn", session_id=session_id)
    order = [text(server.body(response_id)) for (response_id,) in stored]
    eventually(lambda: answers(first) == answers(second) == order)
    assert len(questions(first)) == 3
    first.close()
    second.close()


def test_open_pages_of_a_login_that_ended_ask_for_a_new_one(browser: Browser, server: Server) -> None:
    operator = Operator(browser, server).log_in()
    chat = operator.goto("/chat?new")
    ask_in(chat, {"say": "hello"})
    expect(chat.locator(".end .badge")).to_have_text("completed")
    with server.http() as client:
        asked = {"input": script({"say": "on "}, {"gate": "login"}), "background": True}
        response_id = client.post("/v1/responses", json=asked).json()["id"]
    live = operator.open()
    live.goto(f"{server.url}/live/{response_id}")
    expect(live.locator("#log .text")).to_have_text("on ")
    operator.context.clear_cookies(name="sessionid")
    live.click("#cancel")
    expect(live.locator("#trouble")).to_contain_text("logged out")
    expect(live.locator("#connection")).to_be_hidden()
    expect(chat.locator("#trouble")).to_contain_text("logged out")  # it looks for turns
    server.open_gate("login")
    operator.console_errors.clear()
    operator.leave()


def test_the_playground_renews_a_token_that_ended_early(server: Server, operator: Operator) -> None:
    page = operator.open()
    page.goto(f"{server.url}/chat?new")
    answers = [401]

    def refuse_once(route: Route) -> None:
        if answers:
            route.fulfill(status=answers.pop(), json={"error": {"message": "It ended."}})
        else:
            route.continue_()

    page.route("**/v1/responses", refuse_once)
    ask_in(page, {"say": "renewed"})
    expect(page.locator(".from-assistant .text")).to_have_text("renewed")
    assert answers == []
    page.close()
    operator.console_errors.clear()


def linked(page: Page, fact: str) -> Locator:
    """The link of one fact in the live view."""
    return page.locator("dl > div", has=page.get_by_text(fact, exact=True)).get_by_role("link")


def test_branches_and_retries_lead_to_their_origin(server: Server, operator: Operator) -> None:
    create = server.openai().responses.create
    root = create(input="one").id
    failed = create(input=script({"fail": "out"}), previous_response_id=root).id
    branch = create(input="three", previous_response_id=root).id
    with logged_in(server) as staff:
        staff.act(RESPONSES, "retry", failed)
    [(again,)] = stored_rows(server, "response", "id", retry_of=failed)
    server.ended(again)
    page = operator.open()
    page.goto(f"{server.url}/live/{branch}")
    linked(page, "Branch").click()
    page.wait_for_url(f"**/live/{root}")
    page.goto(f"{server.url}/live/{again}")
    linked(page, "Tries again").click()
    page.wait_for_url(f"**/live/{failed}")
    expect(page.get_by_text("Branch", exact=True)).to_have_count(0)
    linked(page, "Tried again as").click()
    page.wait_for_url(f"**/live/{again}")
    page.close()
