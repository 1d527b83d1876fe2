"""What the bridge has on its disk: damaged, cut, restored or not written, no other message is lost for it."""

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bridges import ANNA, SELF, Bridge, Network, running_bridge
from tests.support.server import eventually

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH: apt-get install nodejs")


def ids(bridge: Bridge, after: str = "") -> list[str]:
    return [message["messageId"] for message in bridge.get("/messages", after=after)["messages"]]


def cut_header(spool: Path) -> None:
    header, _, rest = spool.read_text().partition("\n")
    spool.write_text(f"{header[:5]}\n{rest}")


def lose_end(spool: Path) -> None:
    spool.write_text("".join(spool.read_text().splitlines(keepends=True)[:2]))


def add(line: str) -> Callable[[Path], None]:
    def damage(spool: Path) -> None:
        for path in (spool, spool.with_name("sent.jsonl")):
            path.write_text(f"{path.read_text()}{line}")

    return damage


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        pytest.param(cut_header, ["m1", "m2", "m3"], id="its first line is cut"),
        pytest.param(lose_end, ["m1"], id="its end is lost"),
        pytest.param(add("null\n"), ["m1", "m2", "m3"], id="a line of null"),
        pytest.param(add("{}\n"), ["m1", "m2", "m3"], id="an empty line"),
        pytest.param(add("\x00\x00"), ["m1", "m2", "m3"], id="zeros at its end"),
        pytest.param(Path.unlink, [], id="it is gone"),
    ],
)
def test_a_damaged_spool_keeps_what_can_be_read_and_takes_new_messages(
    tmp_path: Path, damage: Callable[[Path], None], kept: list[str]
) -> None:
    network = Network(tmp_path / "network")
    folder = tmp_path / "bridge"
    for number in (1, 2, 3):
        network.write(f"m{number}", "hello")
    with running_bridge(folder, network) as bridge:
        eventually(lambda: len(ids(bridge)) == 3, what="the messages")
        cursor = bridge.get("/messages")["cursor"]
    damage(folder / "messages.jsonl")
    with running_bridge(folder, network) as bridge:
        assert ids(bridge) == kept
        network.write("m4", "hello")
        eventually(lambda: "m4" in ids(bridge, cursor), what="the message after the damage")


def test_what_a_full_disk_does_not_take_is_delivered_and_written_later(tmp_path: Path) -> None:
    network = Network(tmp_path / "network")
    folder = tmp_path / "bridge"
    key = "k" * 4000
    with running_bridge(folder, network) as bridge:
        network.write("m1", "hello")
        eventually(lambda: ids(bridge) == ["m1"], what="the first message")
        limits = resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE)
        network.write("m2", "hello" * 1000)  # more than the limit leaves
        resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE, (3000, limits[1]))
        network.write("m3", "hello" * 1000)
        eventually(lambda: ids(bridge) == ["m1", "m2", "m3"], what="the message that is in memory")
        assert "messages.jsonl can't be written" in bridge.get("/health")["error"]
        sent = [bridge.post("/send", chatId=ANNA, message="hi", key=key) for _ in range(2)]
        assert [answer.status_code for answer in sent] == [200, 200]
        resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE, limits)
        assert ids(bridge) == ["m1", "m2", "m3"]
        assert bridge.post("/send", chatId=ANNA, message="hi", key="k2").status_code == 200
        assert bridge.get("/health")["error"] == ""
    with running_bridge(folder, network) as bridge:
        assert ids(bridge) == ["m1", "m2", "m3"]
        assert bridge.post("/send", chatId=ANNA, message="hi", key=key).status_code == 200
    assert len(network.lines("sent")) == 2  # one for each key


def test_messages_without_text_or_id_do_not_end_the_bridge(tmp_path: Path) -> None:
    network = Network(tmp_path / "network")
    with running_bridge(tmp_path / "bridge", network) as bridge:
        network.write("s1", "", SELF, body=None)
        network.write("", "hello")
        network.write("m1", "hello")
        eventually(lambda: ids(bridge) == ["s1", "m1"], what="the messages that can be read")
