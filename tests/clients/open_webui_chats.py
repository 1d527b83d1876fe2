"""People chat in the pages of Open WebUI, and what must hold here afterwards."""

import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Error as BrowserError

from tests.clients.open_webui import CHAT, GUIDE, RESPONSES, OpenWebUI, Person, guided_headers
from tests.support.browser import started_chromium
from tests.support.model_stub import Call, Calls, Finish, Gate, ModelStub, Step, Text
from tests.support.people import create_key
from tests.support.server import ROOT, Server, eventually
from tests.support.stored_rows import stored_rows

NAME = "Open WebUI"
WAIT_SECS = 60  # on a machine with much else to do
KEYS = {"alice": "assistant", "bob": "coder", "open-webui-tasks": "titles"}  # each with its profile
TASKS = {"title": "Tickets for the fair", "tags": ["maths"], "follow_ups": ["And with a discount?"]}
BIND = """
from responses_app.models import ApiKey, Profile
for name, profile in {keys}.items():
    ApiKey.objects.get(name=name).profiles.add(Profile.objects.create(name=profile))
"""


@dataclass(frozen=True)
class Stage:
    server: Server
    model: ModelStub
    tasks: ModelStub  # the model of titles, tags and follow-up questions
    webui: OpenWebUI
    keys: dict[str, str]
    alice: Person
    bob: Person

    def connect(self, api: str) -> None:
        headers = json.loads(guided_headers())
        self.webui.connect(self.server, list(self.keys.values()), api, headers)

    def newest(self, *columns: str) -> tuple[Any, ...]:
        return stored_rows(self.server, "response", *columns, order_by="created_at", model="assistant")[-1]


def call(name: str, **arguments: str) -> Step:
    return Calls((Call(f"call_{name}", name, (json.dumps(arguments),)),))


def a_streamed_answer_with_a_tool(stage: Stage, api: str) -> None:
    opened = threading.Event()
    stage.model.play(call("calculate", expression="12 * (3 + 4)"), Finish("tool_calls"))
    stage.model.play(Text("That is 84: "), Gate(opened), Text("twelve times seven."), Finish())
    stage.alice.start_chat()
    stage.alice.ask("What are 12 tickets at 3 plus 4 each?")
    stage.alice.sees("That is 84:")
    opened.set()
    stage.alice.sees("twelve times seven.")
    if api == RESPONSES:
        stage.alice.sees("View Result from calculate")
    stage.model.play(Text("With three more it is 105."), Finish())
    stage.alice.ask("And with three more?")
    stage.alice.sees("With three more it is 105.")
    history = json.dumps(stage.model.asked[-1].body["messages"])
    assert "twelve times seven" in history, "the second turn does not have the first"


def an_answer_after_a_cut_connection(stage: Stage, api: str) -> None:
    opened = threading.Event()
    stage.model.play(Text("Three sources "), Gate(opened), Text(f"agree on {api}."), Finish())
    stage.alice.ask("Who agrees?")
    stage.alice.sees("Three sources")
    stage.alice.context.set_offline(True)
    opened.set()
    eventually(lambda: stage.newest("status") == ("completed",), WAIT_SECS, "the end of the turn")
    stage.alice.context.set_offline(False)
    stage.alice.page.reload()
    stage.alice.sees(f"Three sources agree on {api}.")


def a_stop_button_that_cancels(stage: Stage, api: str) -> None:
    stage.model.play(Text("One, two, "), Gate(threading.Event()))
    stage.alice.ask("Count to a million")
    stage.alice.sees("One, two,")
    stage.alice.stop()
    eventually(lambda: stage.newest("status") == ("cancelled",), WAIT_SECS, "the cancelled turn")
    assert stage.model.asked[-1].hung_up.wait(WAIT_SECS), "the model still writes"


def titles_that_are_not_stored(stage: Stage, api: str) -> None:
    # The list of chats is hidden on a narrow page, and there all the same.
    eventually(lambda: str(TASKS["title"]) in stage.alice.page.content(), WAIT_SECS, "the title of the chat")
    made = stored_rows(stage.server, "response", "is_stored", "output", model="titles")
    assert made, "no title was asked for here"
    assert not any(is_stored for is_stored, _ in made), "titles are stored"
    assert stage.tasks.asked, "another model was asked for titles"
    assert not any("tools" in asked.body for asked in stage.tasks.asked), "titles have tools"


def people_apart(stage: Stage, api: str) -> None:
    stage.model.play(Text("Rename it."), Finish())
    stage.bob.start_chat()
    stage.bob.ask("What about this function?")
    stage.bob.sees("Rename it.")
    assert stage.alice.models() == ["assistant"]
    assert stage.bob.models() == ["coder"]
    owners = {model: set[str]() for model in KEYS.values()}
    for model, owner in stored_rows(stage.server, "response", "model", "owner_id"):
        owners[model].add(str(owner))
    assert [len(found) for found in owners.values()] == [1, 1, 1], f"owners of the profiles: {owners}"
    assert len(set.union(*owners.values())) == 3, f"owners of the profiles: {owners}"


CASES: tuple[Callable[[Stage, str], None], ...] = (
    a_streamed_answer_with_a_tool,
    an_answer_after_a_cut_connection,
    titles_that_are_not_stored,
    a_stop_button_that_cancels,
    people_apart,
)


def drive(environment: Path) -> int:
    failures = 0
    with staged(environment) as stage:
        version = stage.webui.version
        for api in (CHAT, RESPONSES):
            stage.connect(api)
            for case in CASES:
                problem = _problem(case, stage, api)
                label = case.__name__.replace("_", " ")
                print(f"{NAME} {version}: {label}, {api}: {problem or 'works'}", flush=True)
                failures += bool(problem)
    return failures


def _problem(case: Callable[[Stage, str], None], stage: Stage, api: str) -> str:
    try:
        case(stage, api)
    except (AssertionError, BrowserError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@contextmanager
def staged(environment: Path) -> Iterator[Stage]:
    """The server with the profiles of the guide, Open WebUI beside it, and two people with browsers."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-open-webui-") as folder,
        ModelStub() as model,
        ModelStub() as tasks,
        started_chromium() as browser,
    ):
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(_config(tasks))
        upstream = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "demo", "HERMES_BASE_URL": model.url}
        server = Server(home, DJANGO_SETTINGS_MODULE="hermes_site.settings", **upstream)
        server.manage("migrate", "--verbosity", "0")
        server.start()
        webui = OpenWebUI(environment, Path(folder) / "webui")
        try:
            keys = {name: create_key(server, name) for name in KEYS}
            server.manage("shell", "-v0", "-c", BIND.format(keys=KEYS))
            webui.start()
            webui.share("assistant", webui.add_person("alice"))
            webui.share("coder", webui.add_person("bob"))
            webui.share("titles", "*", is_hidden=True)
            webui.connect(server, list(keys.values()), CHAT, {})
            alice, bob = Person(browser, webui, "alice"), Person(browser, webui, "bob")
            yield Stage(server, model, tasks, webui, keys, alice, bob)
        finally:
            webui.stop()
            server.kill()


def _config(tasks: ModelStub) -> str:
    """The profiles of the guide, with a model of its own for titles."""
    [block] = re.findall(r"```yaml\n(.*?)```", (ROOT / GUIDE).read_text(), re.DOTALL)
    config = yaml.safe_load(block)
    config["profiles"]["titles"] |= {"provider": "custom", "base_url": tasks.url, "model": "small"}
    for _ in range(100):
        tasks.play(Text(json.dumps(TASKS)), Finish())
    return str(yaml.safe_dump(config))
