"""What all pages share, in a real browser: theme, times, the width of a phone, and axe-core."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, expect

from tests.support.approvals import until_waiting
from tests.support.axe import Axe
from tests.support.browser import Operator, needs_chromium, started_chromium
from tests.support.node_packages import needs_node
from tests.support.scripted_requests import call, start_background
from tests.support.server import Server, script
from tests.support.staff import RESPONSES, SESSIONS, response_page
from tests.support.stored_rows import session_of, stored_rows

pytestmark = [needs_chromium, pytest.mark.any_database]
WIDE = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=800)
APP = "/admin/responses_app"
TOOL_EVENTS = f"{APP}/toolevent/"
CHAT = "playground-frame001"
IN_INDIA = timedelta(hours=5, minutes=30)  # the zone of the reader
HEADED = ("/", "/chat?new", "/platforms", "/admin/", RESPONSES, "/docs")
# Remembers the theme at the moment when the browser could paint for the first time.
NOTE_THEME = """
new MutationObserver((_, observer) => {
  if (!document.body) return;
  window.themeAtFirst = document.documentElement.dataset.theme;
  observer.disconnect();
}).observe(document, {childList: true, subtree: true});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def waiting(server: Server) -> str:
    """A response whose call waits for approval, with long words."""
    response_id = start_background(server, call("guarded", text="w" * 300))
    until_waiting(server, response_id)
    return response_id


@pytest.fixture(scope="module")
def ended(server: Server) -> str:
    """A branch, with headings and long words."""
    text = "done " + "y" * 300 + "\n\n## Steps\n\n#### First\n\n## Result"
    create = server.openai().responses.create
    root = create(input="one").id
    create(input="two", previous_response_id=root)
    steps = (call("effect", text="x" * 300), {"say": text})
    return create(input=script(*steps), previous_response_id=root).id


@pytest.fixture(scope="module")
def failed(server: Server) -> str:
    """In a chat of the playground."""
    headers = {"X-Hermes-Session-Id": CHAT}
    body = server.openai().responses.create(input=script({"fail": "z" * 300}), extra_headers=headers)
    assert body.status == "failed"
    return body.id


@pytest.fixture(scope="module")
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    options = {"timezone_id": "Asia/Kolkata", "reduced_motion": "reduce", "color_scheme": "light"}
    operator = Operator(browser, server, viewport=WIDE, **options).log_in()
    operator.context.route("**/swagger-ui-bundle.js", leave_out_swagger)
    yield operator
    operator.leave()


def leave_out_swagger(route: Route) -> None:
    """It takes seconds, and only the frame around it is looked at."""
    page = "<main><h1>Hermes Site</h1></main>"
    draw = f"document.getElementById('docs').innerHTML = '{page}'"
    route.fulfill(body=f"window.SwaggerUIBundle = () => {{ {draw}; }}", content_type="text/javascript")


@pytest.fixture
def wide(operator: Operator) -> Operator:
    operator.page.set_viewport_size(WIDE)
    return operator


@pytest.fixture
def phone(operator: Operator) -> Operator:
    operator.page.set_viewport_size(PHONE)
    return operator


def test_a_theme_that_is_chosen_on_one_page_holds_on_all_from_the_first_paint(
    wide: Operator,
) -> None:
    page = wide.goto("/")
    light = background(page)
    page.get_by_label("Theme").select_option("dark")
    dark = background(page)
    assert dark != light
    page.add_init_script(NOTE_THEME)
    for path in HEADED:
        wide.goto(path)
        assert page.evaluate("window.themeAtFirst") == "dark", path
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark", path
        expect(page.get_by_label("Theme")).to_have_value("dark")
    expect(page.locator("html.dark-mode #docs")).to_have_count(1)  # the theme of Swagger UI
    page.get_by_label("Theme").select_option("auto")
    assert background(wide.goto("/")) == light
    page.emulate_media(color_scheme="dark")
    assert background(page) == dark
    page.emulate_media(color_scheme="light")


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_another_tab_follows_the_theme(wide: Operator) -> None:
    first = wide.goto("/chat?new")
    second = wide.context.new_page()
    second.goto(f"{wide.server.url}/docs")
    first.get_by_label("Theme").select_option("dark")
    expect(second.locator("html")).to_have_attribute("data-theme", "dark")
    first.get_by_label("Theme").select_option("auto")
    second.close()


def test_times_are_in_the_readers_zone_with_utc_in_the_tooltip(
    server: Server,
    wide: Operator,
    ended: str,
) -> None:
    [(created,)] = stored_rows(server, "response", "created_at", id=ended)
    utc = datetime.fromisoformat(str(created)[:19])
    event = stored_rows(server, "toolevent", "id", response_id=ended)[0][0]
    for path in (
        f"/live/{ended}",
        RESPONSES,
        response_page(ended),
        f"{APP}/session/{session_of(server, ended)}/change/",
    ):
        time = wide.goto(path).locator(f'time[title="{utc} UTC"]').first
        expect(time).to_have_text(str(utc + IN_INDIA))
    for path in (f"{TOOL_EVENTS}{event}/change/", "/", "/admin/gateway_app/runtimeprocess/"):
        times = wide.goto(path).locator("time")
        expect(times.first).to_have_attribute("title", re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\)?$"))
        assert "UTC" not in " ".join(times.all_inner_texts()), path


def test_times_stay_in_the_readers_zone_when_the_dashboard_refreshes(
    wide: Operator,
    waiting: str,
) -> None:
    page = wide.goto("/")
    shown = page.locator(".approvals time:not([data-relative])").first
    text = shown.inner_text()
    assert "UTC" not in text
    with page.expect_response("**/dashboard/now"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(shown).to_have_text(text)


def test_times_name_their_zone_without_script(
    browser: Browser,
    wide: Operator,
    server: Server,
    ended: str,
) -> None:
    context = browser.new_context(java_script_enabled=False, storage_state=wide.context.storage_state())
    page = context.new_page()
    page.goto(f"{server.url}/live/{ended}")
    expect(page.locator("time").first).to_have_text(re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"))
    expect(page.get_by_label("Theme")).to_be_hidden()  # it could do nothing
    context.close()


def test_a_click_on_a_bar_lists_the_responses_that_ended_then(wide: Operator, ended: str) -> None:
    page = wide.goto("/?window=1h")
    plot = page.locator("#plot-throughput .u-over")
    width = int(plot.evaluate("plot => plot.clientWidth"))
    plot.click(position={"x": width - 3, "y": 20})
    page.wait_for_url(f"**{RESPONSES}?finished_at__gte=*")
    expect(page.locator("#changelist-filter .selected time")).to_have_count(2)


def test_approvals_can_be_decided_on_a_phone_without_scrolling_sideways(
    server: Server, phone: Operator, waiting: str
) -> None:
    [(event,)] = stored_rows(server, "toolevent", "id", response_id=waiting)
    in_sight(phone.goto("/").locator(f"#decide-{event}"))
    page = phone.goto(f"/live/{waiting}")
    expect(page.locator(".decide button")).to_have_count(4)
    for button in page.locator(".decide button").all():
        in_sight(button)
    page = phone.goto(f"{TOOL_EVENTS}?waits=yes")
    in_sight(page.locator("select[name=action]"))
    in_sight(page.locator(".actions button"))
    page = phone.goto(f"{TOOL_EVENTS}{event}/change/")
    for name in ("Allow once", "Allow for its session", "Allow always", "Deny"):
        in_sight(page.get_by_role("button", name=name))


def in_sight(found: Locator) -> None:
    box = found.bounding_box()
    assert box is not None, found
    assert box["x"] >= 0, (found, box)
    assert box["x"] + box["width"] <= PHONE["width"], (found, box)
    assert box["height"] >= 20, (found, box)  # large enough for a finger


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> Axe:
    return Axe(tmp_path_factory.mktemp("axe"))


@needs_node
@pytest.mark.parametrize("kind", ["own pages", "lists", "forms"])
def test_no_page_has_faults_that_axe_finds_or_scrolls_sideways(
    kind: str, server: Server, operator: Operator, axe: Axe, waiting: str, ended: str, failed: str
) -> None:
    [(event,)] = stored_rows(server, "toolevent", "id", response_id=waiting)
    session = f"{SESSIONS}{session_of(server, ended)}/change/"
    paths = {
        "own pages": (
            *("/", f"/chat/{CHAT}", "/platforms", "/docs"),
            *(f"/live/{waiting}", f"/live/{ended}", f"/live/{failed}"),
        ),
        "lists": (
            *("/admin/", f"{RESPONSES}?q=hello", RESPONSES, SESSIONS, TOOL_EVENTS),
            *(f"{APP}/profile/", f"{APP}/apikey/"),
        ),
        "forms": (
            *(response_page(ended), session, f"{TOOL_EVENTS}{event}/change/"),
            f"{APP}/apikey/add/",
        ),
    }
    found: dict[str, list[str]] = {}
    for path in paths[kind]:
        page = operator.goto(path)
        expect(page.locator("[data-markdown]:not(.markdown)")).to_have_count(0)
        if path.startswith(("/live/", "/chat/")):
            expect(page.locator(".log .decide button, .log .end").first).to_be_visible()
        found |= faults(page, path, axe)
    assert found == {}


@needs_node
def test_the_login_page_has_no_faults_that_axe_finds(
    browser: Browser,
    server: Server,
    axe: Axe,
) -> None:
    stranger = Operator(browser, server, viewport=WIDE, reduced_motion="reduce")
    found = faults(stranger.goto("/admin/login/"), "login", axe)
    stranger.leave()
    assert found == {}


def faults(page: Page, path: str, axe: Axe) -> dict[str, list[str]]:
    found = {}
    for theme, size in (("light", WIDE), ("dark", PHONE)):
        page.set_viewport_size(size)
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        faulty = axe.violations(page)
        if page.evaluate("document.documentElement.scrollWidth") > size["width"]:
            faulty.append("scrolls sideways")
        text = str(page.evaluate("document.querySelector('main')?.innerText ?? ''"))
        if re.search(r"^None$|: None\b", text, re.MULTILINE):
            faulty.append("prints None")
        if faulty:
            found[f"{path} {theme} {size['width']}"] = faulty
    return found
