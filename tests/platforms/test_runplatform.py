"""WhatsApp by the bridge, from the person's phone and back: server, platform process and bridge are real."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_app.config.whatsapp import DEFAULT_PREFIX
from tests.support.bridges import ANNA, GROUP, SELF, TRANSPORT, Network, PlatformProcess, bridge_config
from tests.support.platforms import outbox
from tests.support.server import Server, eventually, script
from tests.support.session_client import read_session
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH: apt-get install nodejs")


PRINTING = """
import {{ connect as connectQuietly }} from '{transport}'
export async function connect(given) {{
  console.log('a line before the bridge listens')
  const transport = await connectQuietly(given)
  setTimeout(() => console.log('x'.repeat(1000000)), 0)
  return transport
}}
"""


def state_of(pid: int) -> str:
    """A letter of /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


Start = Callable[..., tuple[Server, PlatformProcess, Network]]


@pytest.fixture
def start(configured_server: Callable[..., Server], tmp_path: Path) -> Iterator[Start]:
    made: list[PlatformProcess] = []

    def begin(*, env: dict[str, str] | None = None, **options: Any) -> tuple[Server, PlatformProcess, Network]:
        network = Network(tmp_path / "network")
        server = configured_server(bridge_config(**options), **(env or {}))
        made.append(PlatformProcess(server, network).begin())
        server.start()
        made[-1].until_started()
        return server, made[-1], network

    yield begin
    for platform in made:
        platform.kill()


def test_people_are_answered_and_everything_else_is_left_alone(start: Start) -> None:
    server, platform, network = start()
    assert network.lines("started")[-1]["prefix"] is None
    network.write("a1", script({"say": "Hello Anna."}))
    assert network.until_sent(1) == [f"{DEFAULT_PREFIX}Hello Anna."]
    network.write("s1", script({"say": "Hello me."}), SELF)
    assert network.until_sent(1, SELF) == [f"{DEFAULT_PREFIX}Hello me."]
    network.write("x1", "let me in", "666@s.whatsapp.net")
    network.write("g1", "among people", GROUP, sender=ANNA)
    mentions = {"sender": ANNA, "mentionedIds": [SELF]}
    network.write("g2", script({"say": "Yes?"}), GROUP, **mentions)
    assert network.until_sent(1, GROUP) == [f"{DEFAULT_PREFIX}Yes?"]
    assert network.lines("sent")[-1]["replyTo"] == "g2"
    network.write("p1", "/pause")
    network.until_sent(2)
    network.write("p2", "hello?")
    network.write("p3", "/resume")
    network.write("p4", script({"say": "Here again."}))
    assert network.until_sent(4)[1:] == [
        f"{DEFAULT_PREFIX}⏸ Paused. Send /resume to go on.",
        f"{DEFAULT_PREFIX}▶ I answer again.",
        f"{DEFAULT_PREFIX}Here again.",
    ]
    assert read_session(server, f"whatsapp:{ANNA}")["source"] == "whatsapp"
    ignored = stored_rows(server, "inboxmessage", "message_id", status="ignored")
    assert sorted(ignored) == [("g1",), ("p1",), ("p2",), ("p3",), ("x1",)]
    assert len(network.texts(SELF)) == 1  # its echo was not answered
    platform.kill(signal.SIGTERM)
    assert state_of(platform.bridge_pids()[-1]) == "gone"
    assert "Traceback" not in platform.log


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("options", "given", "prefix"),
    [
        pytest.param({"reply_prefix": ""}, "", "", id="empty"),
        pytest.param({"reply_prefix": "*Bot*\\n"}, "*Bot*\\n", "*Bot*\n", id="set"),
    ],
)
def test_the_configured_prefix_reaches_the_bridge_through_its_environment(
    start: Start, options: dict[str, str], given: str | None, prefix: str
) -> None:
    _, _, network = start(**options)
    assert network.lines("started")[-1]["prefix"] == given
    network.write("a1", script({"say": "Hello."}))
    network.write("s1", script({"say": "Mine."}), SELF)
    assert network.until_sent(1) == [f"{prefix}Hello."]
    assert network.until_sent(1, SELF) == [f"{prefix}Mine."]  # its echo is not answered
    network.write("s2", script({"say": "Next."}), SELF)
    assert network.until_sent(2, SELF) == [f"{prefix}Mine.", f"{prefix}Next."]


@pytest.mark.any_database
def test_the_message_grows_while_the_turn_runs(start: Start) -> None:
    server, _, network = start(reply_prefix="")
    words = "one two three four five six seven eight nine ten "
    network.write("a1", script({"say": words}, {"gate": "grow"}, {"say": "and the end."}))
    assert network.until_sent(1) == [words.strip()]
    eventually(lambda: network.lines("typing"), what="typing")
    server.open_gate("grow")
    eventually(lambda: network.final_texts() == [f"{words}and the end."], 20, "the last edit")
    assert len(network.texts()) == 1


@pytest.mark.any_database
def test_the_pairing_code_is_shown_at_the_terminal(start: Start) -> None:
    server, platform, network = start()
    network.touch("qr", "2@pairing-code")
    eventually(lambda: "Linked devices" in platform.log and "█ ▄▄▄▄▄ █" in platform.log, 20, "the code")
    paired = [("pairing", "2@pairing-code")]
    eventually(lambda: stored_rows(server, "platformstate", "status", "pairing_code") == paired, what="the code")


@pytest.mark.any_database
def test_a_bridge_that_dies_or_hangs_is_replaced_and_nothing_is_lost_or_sent_twice(start: Start) -> None:
    server, platform, network = start(reply_prefix="", env={"TEST_BRIDGE_REPLY_SECS": "0.5"})
    network.write("a1", script({"say": "First."}))
    network.until_sent(1)
    os.kill(platform.bridge_pids()[-1], signal.SIGKILL)
    network.write("a2", script({"say": "Second."}))
    assert network.until_sent(2) == ["First.", "Second."]
    assert len(platform.bridge_pids()) == 2
    network.touch("hang")
    eventually(lambda: not (network.folder / "hang").exists(), what="the bridge that hangs")
    network.write("a3", script({"say": "Third."}))
    assert network.until_sent(3, secs=60)[2:] == ["Third."]
    assert len(platform.bridge_pids()) == 3
    eventually(lambda: {row[1] for row in outbox(server)} == {"sent"}, what="an empty outbox")
    assert network.texts() == ["First.", "Second.", "Third."]


@pytest.mark.any_database
def test_a_transport_that_prints_and_messages_without_fields_stop_nothing_and_no_second_process_starts(
    start: Start, tmp_path: Path
) -> None:
    """The pipe of the bridge's output holds 64 KiB; a write to a full one would block all of the bridge."""
    printing = tmp_path / "printing.mjs"
    printing.write_text(PRINTING.format(transport=TRANSPORT))
    server, platform, network = start(reply_prefix="", transport_module=str(printing))
    network.write("no-time", "hello", senderId=[], timestamp="never")
    network.write("a1", script({"say": "Still here."}))
    assert network.until_sent(1) == ["Still here."]
    second = server.managed("runplatform", "whatsapp")
    assert b"Another process runs whatsapp" in second.stderr
    assert len(platform.bridge_pids()) == 1


@pytest.mark.any_database
def test_what_can_not_run_is_refused_with_the_remedy(configured_server: Callable[..., Server]) -> None:
    server = configured_server("{}")
    assert b"is not enabled in config.yaml" in server.managed("runplatform", "whatsapp").stderr
    (server.home / "config.yaml").write_text(bridge_config())
    server.env["PATH"] = "/nowhere"
    assert b"Node.js is not on the PATH" in server.managed("runplatform", "whatsapp").stderr
