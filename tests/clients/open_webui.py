"""An Open WebUI of its own, connected as its guide has it: one connection for each group of people.

Accounts and the access to models are made through its API; people chat in its pages.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Locator, Page

from tests.support.ports import free_port
from tests.support.server import ROOT, Server, eventually

GUIDE = "docs/guide/open-webui.md"
START_SECS = 180  # on a machine with much else to do
WAIT_MS = 60_000
PASSWORD = "correct horse battery staple"
# It would load a model for the search in documents from a hub, and look for newer versions of itself.
OFFLINE = {
    "OFFLINE_MODE": "true",
    "HF_HUB_OFFLINE": "1",
    "RAG_EMBEDDING_ENGINE": "openai",
    "ENABLE_VERSION_UPDATE_CHECK": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
CHAT = "chat_completions"
RESPONSES = "responses"


def guided_variables() -> dict[str, str]:
    """The variables of the guide, without the address and the key, which the connections have."""
    [block] = re.findall(r"```sh\n(.*?)```", (ROOT / GUIDE).read_text(), re.DOTALL)
    return dict(re.findall(r"^(\w+)='?(.*?)'?$", block, re.MULTILINE))


def guided_headers() -> str:
    """The headers of a connection of the guide, as they are entered."""
    [headers] = re.findall(r"```json\n(.*?)```", (ROOT / GUIDE).read_text(), re.DOTALL)
    return str(headers)


class OpenWebUI:
    def __init__(self, environment: Path, home: Path) -> None:
        self.program = environment / "bin/open-webui"
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        own = {"DATA_DIR": str(home), "WEBUI_SECRET_KEY": "only for these tests"}
        self.env = {**os.environ, **OFFLINE, **guided_variables(), **own}
        self.process: subprocess.Popen[bytes] | None = None
        self.admin = httpx.Client(base_url=self.url, timeout=60)

    def start(self) -> "OpenWebUI":
        self.home.mkdir()
        command = [str(self.program), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.home, env=self.env, stdout=log, stderr=log)
        eventually(self._answers, START_SECS, f"the first answer of Open WebUI (see {self.home / 'log'})")
        # The first account is that of the administrator.
        account = {"name": "Operator", "email": email("operator"), "password": PASSWORD}
        token = self.post("/api/v1/auths/signup", account)["token"]
        self.admin.headers["Authorization"] = f"Bearer {token}"
        return self

    def stop(self) -> None:
        self.admin.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.home / "log").read_text()[-4000:]
        try:
            return self.admin.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def version(self) -> str:
        return str(self.admin.get("/api/version").json()["version"])

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self.admin.post(path, json=body)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def connect(self, server: Server, keys: list[str], api: str, headers: Mapping[str, str]) -> None:
        configs: dict[str, Any] = {}
        for number, _ in enumerate(keys):
            configs[str(number)] = {"enable": True, "api_type": api, "headers": dict(headers)}
        config = {
            "ENABLE_OPENAI_API": True,
            "OPENAI_API_BASE_URLS": [f"{server.url}/v1"] * len(keys),
            "OPENAI_API_KEYS": keys,
            "OPENAI_API_CONFIGS": configs,
        }
        self.post("/openai/config/update", config)
        self.admin.get("/api/models", params={"refresh": "true"})

    def add_person(self, name: str) -> str:
        account = {"name": name.title(), "email": email(name), "password": PASSWORD, "role": "user"}
        return str(self.post("/api/v1/auths/add", account)["id"])

    def share(self, model: str, person: str, *, is_hidden: bool = False) -> None:
        """Lets one person use a model; ``*`` is everyone."""
        access = {"principal_type": "user", "principal_id": person, "permission": "read"}
        form = {"id": model, "name": model, "meta": {"hidden": is_hidden}, "params": {}, "access_grants": [access]}
        self.post("/api/v1/models/create", form)


def email(name: str) -> str:
    return f"{name}@example.org"


class Person:
    """A user of Open WebUI with a browser."""

    def __init__(self, browser: Browser, webui: OpenWebUI, name: str) -> None:
        self.webui = webui
        self.context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="light")
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.page.goto(f"{webui.url}/auth")
        self.page.fill("input[type=email]", email(name))
        self.page.fill("input[type=password]", PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#chat-input")

    def start_chat(self) -> None:
        self.page.goto(self.webui.url)
        self.page.wait_for_selector("#chat-input")

    def ask(self, question: str) -> None:
        self.page.click("#chat-input")
        self.page.keyboard.type(question)
        self.page.keyboard.press("Enter")

    def sees(self, text: str) -> Locator:
        found = self.page.get_by_text(text).first
        found.wait_for()
        return found

    def stop(self) -> None:
        self.page.get_by_role("button", name="Stop").first.click()

    def models(self) -> list[str]:
        """Those that the list of models offers."""
        self.page.click("#model-selector-model-button")
        options = self.page.get_by_role("option")
        options.first.wait_for()
        found = [str(option.get_attribute("data-value") or option.inner_text()) for option in options.all()]
        self.page.keyboard.press("Escape")
        return sorted(found)
