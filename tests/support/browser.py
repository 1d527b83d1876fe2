"""A real browser for the tests of pages: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.support.server import Server

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WAIT_MS = 15_000

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not on this machine: apt-get install chromium"
)


@contextmanager
def started_chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def credentials(server: Server) -> tuple[str, str]:
    name, password = (server.home / "admin_login").read_text().split()
    return name, password


class Operator:
    """An operator with a browser, logged in, whose console has no errors."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(WAIT_MS)
        self.console_errors: list[str] = []
        self.requested: set[str] = set()
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        page.on("dialog", lambda dialog: self.console_errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requested.add(request.url))
        self.page = page
        return page

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console_errors.append(message.text)

    def goto(self, path: str) -> Page:
        self.page.goto(self.server.url + path)
        return self.page

    def log_in(self) -> "Operator":
        name, password = credentials(self.server)
        page = self.goto("/")
        page.fill("#id_username", name)
        page.fill("#id_password", password)
        page.click("[type=submit]")
        page.wait_for_selector("#now")
        return self

    def leave(self) -> None:
        self.context.close()
        elsewhere = [url for url in self.requested if not url.startswith((self.server.url, "data:"))]
        assert self.console_errors == []
        assert elsewhere == []
