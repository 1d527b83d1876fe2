"""The code of README and of docs/guide, as it is written there."""

import importlib.metadata
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import WAIT_MS, needs_chromium, started_chromium
from tests.support.node_packages import INSTALL_SECS, SOURCE, needs_node
from tests.support.ports import free_port
from tests.support.server import ROOT, Server, script
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

GUIDE = ROOT / "docs/guide"
RUN_SECS = 60
FAST = "at 500 words per second"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def adapted(code: str, server: Server) -> str:
    """For the address and the key of a test, and without the slowness that is there to be seen."""
    code = code.replace("http://127.0.0.1:8642", server.url).replace("var/api_key", str(server.home / "api_key"))
    return code.replace("slowly", FAST)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer_of_builtin(server: Server, words: int) -> str:
    response = server.openai().responses.create(model="hermes-agent", input=f"Write {words} words")
    return response.output_text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("openai-python.md", ("The result is 84.", "completed\n")),
        ("langchain.md", ("The result is 84.", "Say hello")),
        ("openai-agents.md", ("The result is 84.",)),
        ("pydantic-ai.md", ("The result is 84.",)),
    ],
)
def test_the_python_of_a_guide_runs(server: Server, tmp_path: Path, page: str, expected: tuple[str, ...]) -> None:
    code = adapted("".join(blocks(GUIDE / page, "python")), server)
    output = run([sys.executable, "-c", code], tmp_path)
    for text in expected:
        assert text in output


def test_the_python_of_the_readme_resumes(server: Server, tmp_path: Path) -> None:
    [code] = blocks(ROOT / "README.md", "python")
    assert run([sys.executable, "-c", adapted(code, server)], tmp_path) == answer_of_builtin(server, 100)


@needs_node
@pytest.mark.timeout(INSTALL_SECS + RUN_SECS)
def test_the_javascript_of_the_readme_resumes(node_client: Path, server: Server) -> None:
    [code] = blocks(ROOT / "README.md", "js")
    program = node_client / "readme.mjs"
    program.write_text(adapted(code, server))
    assert run(["node", str(program)], node_client) == answer_of_builtin(server, 100)


@needs_node
@pytest.mark.timeout(INSTALL_SECS + RUN_SECS)
@pytest.mark.parametrize("page", ["openai-javascript.md", "ai-sdk.md"])
def test_the_javascript_of_a_guide_runs(node_client: Path, server: Server, page: str) -> None:
    [code] = blocks(GUIDE / page, "js")
    program = (node_client / page).with_suffix(".mjs")
    program.write_text(adapted(code, server))
    assert "The result is 84." in run(["node", str(program)], node_client)


@needs_node
@pytest.mark.timeout(INSTALL_SECS + RUN_SECS)
def test_an_app_that_is_killed_shows_every_event_of_its_answer(
    node_client: Path, server: Server, tmp_path: Path
) -> None:
    [code] = blocks(GUIDE / "phone-app.md", "js")
    app = node_client / "app.mjs"
    app.write_text(code)
    command = ["node", "phone.mjs", str(app), server.url, server.key, str(tmp_path)]
    killed = subprocess.run([*command, "20", "Write 60 words of a phone"], cwd=node_client, timeout=RUN_SECS)
    assert killed.returncode == -signal.SIGKILL
    turn = json.loads((tmp_path / "state.json").read_text())
    run([*command, "-2"], node_client)
    shown = [json.loads(line) for line in (tmp_path / "shown.jsonl").read_text().splitlines()]
    assert [event["sequence_number"] for event in shown] == list(range(len(shown)))
    assert "".join(event.get("delta", "") for event in shown) == answer_of_builtin(server, 60)
    # The app was killed before it learned that its request had arrived: it sends it again, and the agent runs once.
    (tmp_path / "state.json").write_text(json.dumps({**turn, "id": None, "last": -1}))
    run([*command, "-2"], node_client)
    again = json.loads((tmp_path / "shown.jsonl").read_text().splitlines()[len(shown)])
    assert again["response"]["id"] == turn["id"]


@contextmanager
def served(html: str, port: int) -> Iterator[None]:
    """Over HTTP: a browser lets no page from elsewhere reach a loopback address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as pages:
        thread = threading.Thread(target=pages.serve_forever, args=(0.05,))
        thread.start()
        yield
        pages.shutdown()
        thread.join()


@needs_chromium
def test_the_page_with_an_event_source_misses_nothing_when_it_is_cut(make_server: Callable[..., Server]) -> None:
    port = free_port()
    origin = f"http://localhost:{port}"
    server = make_server(HERMES_AUTH="off", API_SERVER_CORS_ORIGINS=origin)
    [page_source] = blocks(GUIDE / "eventsource.md", "html")
    asked = json.dumps(script({"say": "one "}, {"gate": "event-source"}, {"say": "two"}))
    page_source = adapted(page_source, server).replace('"Write 20 words"', asked)
    with served(page_source, port), started_chromium() as browser:
        context = browser.new_context()
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.goto(f"{origin}/")
        expect(page.locator("#text")).to_have_text("one ", timeout=WAIT_MS)
        context.set_offline(True)
        server.open_gate("event-source")
        [(response_id,)] = stored_rows(server, "response", "id")
        server.ended(response_id)
        context.set_offline(False)
        expect(page).to_have_title("response.completed", timeout=WAIT_MS)
        assert page.locator("#text").text_content() == "one two"


def test_every_page_is_in_the_index() -> None:
    index = (GUIDE / "README.md").read_text()
    pages = {page.name for page in GUIDE.glob("*.md")} - {"README.md"}
    assert len(pages) == 18
    assert pages == set(re.findall(r"\]\((\w[\w-]+\.md)\)", index))


def test_the_versions_are_those_that_the_tests_run() -> None:
    index = (GUIDE / "README.md").read_text()
    clients = (ROOT / "docs/clients.md").read_text()
    for package in ("openai", "langchain-openai", "openai-agents", "pydantic-ai-slim"):
        assert f"`{package}` {importlib.metadata.version(package)} | `make test`" in index, package
    packages = json.loads((SOURCE / "package.json").read_text())["dependencies"]
    assert f"`openai` {packages['openai']} | `make test`" in index
    assert packages["ai"] in index
    assert packages["ai"] in clients
    driven = json.loads((ROOT / "tests/clients/node/package.json").read_text())["dependencies"]
    for package in ("@openai/codex", "opencode-ai"):
        assert f"`{package}` {driven[package]} | `make test-clients`" in index, package
    for name in ("aider", "openwebui"):
        pinned = (ROOT / f"requirements-{name}.in").read_text().splitlines()[-1].partition(" ;")[0]
        package, _, version = pinned.partition("==")
        assert f"`{package}` {version} | `make test-clients`" in index
        assert f"`{package}` {version} |" in clients
    assert f"Tried with version {version}." in (GUIDE / "open-webui.md").read_text()
    for version in re.findall(r"`ai` ([\d.]+)", (GUIDE / "ai-sdk.md").read_text()):
        assert version in clients


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/hermes.md", *sorted(GUIDE.glob("*.md"))], ids=str)
def test_links_lead_to_headings_that_exist(page: Path) -> None:
    for path, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in slugs(page.parent / path if path else page), f"{path}#{anchor}"
