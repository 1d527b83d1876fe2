"""axe-core, which finds what keeps people with disabilities from using a page."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.support.node_packages import install_packages

PACKAGE = "axe-core@4.14.0"
# Colors that still change are not those of the page.
FINISHED = "document.getAnimations().map(each => each.finished)"
UNTIL_STILL = f"Promise.allSettled({FINISHED}).then(() => null)"
# Without copies of stylesheets: the pages allow no inline style, and the console would report each.
RUN = "axe.run({preload: false, resultTypes: ['violations']}).then(found => found.violations)"


class Axe:
    def __init__(self, folder: Path) -> None:
        install_packages(folder, PACKAGE)
        self._source = (folder / "node_modules/axe-core/axe.min.js").read_text()

    def violations(self, page: Page) -> list[str]:
        page.evaluate(UNTIL_STILL)
        if not page.evaluate("'axe' in window"):
            page.evaluate(self._source)
        found = page.evaluate(RUN)
        return [_described(violation) for violation in found]


def _described(violation: dict[str, Any]) -> str:
    targets = [" ".join(node["target"]) for node in violation["nodes"]]
    return f"{violation['id']}: {', '.join(targets[:5])}"
