"""The pictures in docs/pictures, taken again: a real server, a model's double that speaks of real things, Chromium.

Run it with ``make pictures``.
"""

import json
import sys
import tempfile
from pathlib import Path
from threading import Event
from typing import Any

from playwright.sync_api import Page

from tests.support.browser import Operator, started_chromium
from tests.support.model_stub import (
    Answer,
    Call,
    Calls,
    Finish,
    Gate,
    ModelStub,
    Step,
    Text,
    Thought,
)
from tests.support.server import ROOT, Server, eventually
from tests.support.staff import RESPONSES, response_page

WIDTH = 1280
PICTURES = ROOT / "docs" / "pictures"
PROFILES = "profiles: {researcher: {instructions: Cite your sources.}, coder: {instructions: Prefer small changes.}}\n"
USAGE = {"input": 1840, "output": 212, "cached": 900, "written": 0, "reasoned": 64}
NEVER = Event()
REFUSED = {
    "error": {"message": "This model's maximum context length is 131072 tokens.", "type": "invalid_request_error"}
}

# A day before this one, as if people had worked: what the plots show.
YESTERDAY = """
import random
from datetime import timedelta
from django.contrib.auth.models import User
from django.utils import timezone
from responses_app.models import ApiKey, Response, Session, ToolEvent
from responses_app.models.tool_events import ToolStatus
dice, now = random.Random(7), timezone.now()
keys = {key.name: key for key in ApiKey.objects.select_related("owner")}
sessions = {
    name: Session.objects.create(owner=key.owner, public_id=f"sess_{name}", title=title, source="responses")
    for (name, key), title in zip(keys.items(), ("Weekly report", "Flaky tests", "Ideas for the talk"))
}
for minute in range(10, 1430, 4):
    at, name = now - timedelta(minutes=minute), dice.choice(list(keys))
    if dice.random() > 0.25 + 0.6 * (6 < at.hour < 20):
        continue
    status = "failed" if dice.random() < 0.04 else "cancelled" if dice.random() < 0.03 else "completed"
    took, session = dice.lognormvariate(8.4, 0.6), sessions[name]
    session.turn_count += 1
    row = Response.objects.create(
        owner=session.owner, session=session, turn=session.turn_count, status=status, on_disconnect="continue",
        model=dice.choice(["hermes-agent", "hermes-agent", "researcher", "coder"]), requested_by=f"key {keys[name].pk}",
        created_at=at - timedelta(milliseconds=took), finished_at=at, is_log_merged=True, attempt=1, total_ms=int(took),
        first_output_ms=int(took / dice.uniform(6, 14)), input_tokens=dice.randint(300, 9000),
        output_tokens=dice.randint(40, 900), tool_calls=dice.randint(0, 2), output=[],
        error={"message": "The upstream is out of capacity."} if status == "failed" else None,
    )
    for number in range(row.tool_calls):
        ToolEvent.objects.create(
            response=row, call_id=f"call_{number}", name=dice.choice(["terminal", "read_file", "search_files"]),
            attempt=1, status=ToolStatus.FAILED if dice.random() < 0.05 else ToolStatus.COMPLETED, started_at=at,
        )
    session.input_tokens += row.input_tokens
    session.output_tokens += row.output_tokens
    session.last_active_at = max(at, session.last_active_at) if session.turn_count > 1 else at
    session.save()
"""

# A bridge that waits for its phone, and replies that came too late.
PLATFORMS = "whatsapp: {enabled: true, transport: bridge}\nplatforms: {fake: {enabled: true}}\n"
TROUBLE = """
from datetime import timedelta
from django.db.models.functions import Now
from django.utils import timezone
from responses_app.models import InboxMessage, OutboxMessage, PlatformChat, PlatformState
now = timezone.now()
state = {"status": "pairing", "pairing_code": "2@" + "Xy9kLm3Qw" * 22, "reported_at": now + timedelta(hours=1)}
error = {"error": "The bridge answered 502: Re-engagement message", "error_at": now - timedelta(minutes=7)}
PlatformState.objects.update_or_create(platform="whatsapp", defaults=state | error)
chat = PlatformChat.objects.create(platform="whatsapp", chat_id="491700")
for key in "abc":
    OutboxMessage.objects.create(platform="whatsapp", chat=chat, key=key, text="Hi", status="dead", closed_at=Now())
InboxMessage.objects.create(
    platform="whatsapp", chat=chat, message_id="1", sender_id="491700", status="failed", sent_at=now, closed_at=now
)
"""


def call(name: str, **arguments: str) -> Step:
    return Calls((Call(f"call_{name}", name, (json.dumps(arguments),)),))


def speak(text: str) -> list[Step]:
    return [Text(f"{word} ") for word in text.split()]


class Demo:
    def __init__(self, server: Server, stub: ModelStub) -> None:
        self.server = server
        self.stub = stub
        owners = {"alice-laptop": "alice", "ci": "ci", "open-webui": "team"}
        self.keys = {name: server.manage("createkey", name, "--owner", owner) for name, owner in owners.items()}

    def ask(self, asked: str, session: str = "", key: str = "", path: str = "/v1/responses", **more: Any) -> str:
        headers = {"X-Hermes-Approval-Wait": "true"}
        if session:
            headers["X-Hermes-Session-Id"] = session
        with self.server.http(self.keys.get(key)) as client:
            answer = client.post(path, json={"input": asked, **more}, headers=headers)
        body = answer.json()
        return str(body.get("response_id") or body.get("id"))

    def work(self) -> dict[str, str]:
        """One session with tools, a failure, one that writes and one that waits for consent."""
        play = self.stub.play
        play(Answer(400, json.dumps(REFUSED).encode()))
        self.ask("Summarise the whole mail archive", key="open-webui")
        play(*speak("Version 2.4 resumes every stream and starts twice as fast."), Finish("stop", USAGE))
        self.ask("Draft the release notes for 2.4", key="alice-laptop", model="coder")
        asked = "Our build takes 240 s: lint 12, tests 44, bundling 184. What should we look at first?"
        play(
            Thought("The largest share decides. I compute it instead of guessing."),
            call("calculate", expression="184 / 240 * 100"),
            Finish("tool_calls", USAGE),
        )
        reply = "Bundling: it is 77 % of the build. Its cache is keyed by the date, so every day starts from nothing."
        play(*speak(reply), Finish("stop", USAGE))
        self.ask(asked, "build-speed")
        note = "# Build speed\n\nBundling takes 77 %. Key its cache by the lock file.\n"
        play(call("write_file", path="build-speed.md", content=note), Finish("tool_calls", USAGE))
        play(*speak("Done, in build-speed.md."), Finish("stop", USAGE))
        second = self.ask("Write that down for the team", "build-speed")
        play(
            Thought("Changing the cache key is one command. It leaves the sandbox, so an operator must agree."),
            *speak("The new key is one command away; it needs your consent."),
            call("terminal", command="make deploy CACHE_KEY=lockfile"),
            Finish("tool_calls", USAGE),
        )
        asked_first = [{"type": "mcp", "server_label": "hermes", "require_approval": "always"}]
        waiting = self.ask("Deploy the new cache key", "build-speed", background=True, tools=asked_first)
        with self.server.http() as client:
            eventually(lambda: client.get(f"/v1/responses/{waiting}/approval").json()["pending"], 30)
        play(*speak("Three sources agree, and a fourth"), Gate(NEVER))
        self.ask("Compare the papers on stream resumption", key="open-webui", model="researcher", background=True)
        return {"second": second, "waiting": waiting}


def shoot(page: Page, name: str, **options: Any) -> None:
    page.wait_for_timeout(600)  # fonts, plots and what is still on its way
    page.screenshot(path=PICTURES / f"{name}.png", **options)


def take(operator: Operator, demo: Demo, made: dict[str, str]) -> None:
    shoot(operator.goto("/"), "dashboard", clip={"x": 0, "y": 0, "width": WIDTH, "height": 1460}, full_page=True)
    operator.page.emulate_media(color_scheme="dark")
    shoot(operator.page, "dashboard-dark", clip={"x": 0, "y": 0, "width": WIDTH, "height": 800})
    operator.page.emulate_media(color_scheme="light")
    shoot(operator.goto(f"/live/{made['waiting']}"), "live")
    demo.stub.play(call("calculate", expression="12 * (3 + 4)"), Finish("tool_calls", USAGE))
    demo.stub.play(*speak("That is 84: twelve times seven. If the discount applies to each of"), Gate(NEVER))
    page = operator.goto("/chat?new")
    page.fill("#text", "What are 12 tickets at 3 plus 4 each?")
    page.press("#text", "Enter")
    page.get_by_text("discount applies").wait_for()
    shoot(page, "playground")
    session = demo.server.query("SELECT session_id FROM responses_app_response WHERE id = ?", made["second"])[0][0]
    page = operator.goto(f"/admin/responses_app/session/{session}/change/")
    page.locator(".hs-call summary").nth(1).click()
    shoot(page, "session")
    shoot(operator.goto(RESPONSES), "responses")
    page = operator.goto(response_page(made["second"]))
    page.locator(".hs-call summary").first.click()
    shoot(page, "response")
    demo.server.manage("shell", "-v0", "-c", TROUBLE)
    shoot(operator.goto("/platforms"), "platforms")
    page = operator.goto("/docs")
    page.locator("#operations-tag-responses").scroll_into_view_if_needed()
    page.mouse.wheel(0, 500)
    shoot(page, "api")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ModelStub() as stub, started_chromium() as browser:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(PROFILES + PLATFORMS)
        model = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "demo", "HERMES_BASE_URL": stub.url}
        model["HERMES_TERMINAL"] = "unsandboxed"
        server = Server(home, DJANGO_SETTINGS_MODULE="hermes_site.settings", **model)
        server.manage("migrate", "--verbosity", "0")
        server.start()
        try:
            demo = Demo(server, stub)
            server.manage("shell", "-v0", "-c", YESTERDAY)
            made = demo.work()
            operator = Operator(browser, server, viewport={"width": WIDTH, "height": 800}).log_in()
            take(operator, demo, made)
            operator.leave()
        finally:
            server.kill()
    for picture in sorted(PICTURES.iterdir()):
        sys.stdout.write(f"{picture.name}: {picture.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()
