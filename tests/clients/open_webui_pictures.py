"""The pictures of Open WebUI in its guide, taken again: ``make pictures-openwebui``."""

import sys
from pathlib import Path

from tests.clients.open_webui import RESPONSES, Person
from tests.clients.open_webui_chats import Stage, a_streamed_answer_with_a_tool, staged
from tests.support.pictures import shoot


def main(environment: Path) -> None:
    with staged(environment) as stage:
        stage.connect(RESPONSES)
        a_streamed_answer_with_a_tool(stage, RESPONSES)
        page = stage.alice.page
        page.get_by_text("View Result from calculate").click()
        page.get_by_text("And with a discount?").wait_for()
        shoot(page, "open-webui")
        _take_connection(stage)


def _take_connection(stage: Stage) -> None:
    browser = stage.alice.context.browser
    assert browser is not None
    operator = Person(browser, stage.webui, "operator")
    page = operator.page
    page.goto(f"{stage.webui.url}/admin/settings/connections")
    page.get_by_role("button", name="Configure").first.click()
    page.get_by_role("heading", name="Edit Connection").wait_for()
    page.get_by_role("button", name="Advanced").last.click()
    page.get_by_placeholder("Enter additional headers in JSON format").wait_for()
    page.mouse.move(0, 0)  # away from fields with explanations
    shoot(page, "open-webui-connection")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
