"""The bridge program by itself: who may ask, what is kept, and what begins each message."""

import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from gateway_app.config.whatsapp import DEFAULT_PREFIX
from tests.support.bridges import ANNA, GROUP, SECRET, SELF, Network, running_bridge
from tests.support.server import eventually

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH: apt-get install nodejs")


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return Network(tmp_path / "network")


def ids(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [message["messageId"] for message in found["messages"]]


def test_only_callers_with_the_secret_and_the_loopback_name_are_answered(network: Network, tmp_path: Path) -> None:
    with running_bridge(tmp_path / "b", network) as bridge:
        assert bridge.get("/health")["status"] == "connected"
        assert httpx.get(bridge.url + "/health").status_code == 401
        assert bridge.request("GET", "/health", headers={"Authorization": "Bearer guess"}).status_code == 401
        assert bridge.request("GET", "/health", headers={"Host": "attacker.example"}).status_code == 403
        assert bridge.post("/send", chatId=ANNA).status_code == 400
        assert bridge.request("POST", "/send", content=b"no json").status_code == 400
        assert bridge.request("GET", "/elsewhere").status_code == 404
        network.touch("qr", "2@abc")
        eventually(lambda: bridge.get("/health")["qr"] == "2@abc", what="the pairing code")
        assert bridge.post("/send", chatId=ANNA, message="hi").status_code == 503


def test_messages_stay_until_the_next_cursor_acknowledges_them_also_over_a_kill(
    network: Network, tmp_path: Path
) -> None:
    network.write("m1", "one")
    network.write("m2", "two")
    with running_bridge(tmp_path / "b", network) as bridge:
        first = eventually(lambda: found if len(ids(found := bridge.get("/messages"))) == 2 else None)
        assert bridge.get("/messages") == first  # reading takes nothing away
        bridge.process.kill()
    with running_bridge(tmp_path / "b", network) as bridge:
        assert bridge.get("/messages") == first
        network.write("m3", "three")
        after = bridge.get("/messages", after=first["cursor"], wait="5")
        assert ids(after) == ["m3"]
        assert ids(bridge.get("/messages", after="of-another-spool:99")) == ["m1", "m2", "m3"]
        assert bridge.get("/messages", after=after["cursor"])["messages"] == []


def test_the_same_key_is_sent_once_also_over_a_kill(network: Network, tmp_path: Path) -> None:
    with running_bridge(tmp_path / "b", network) as bridge:
        sent = [bridge.post("/send", chatId=ANNA, message="hi", key="k1").json()["messageId"] for _ in range(2)]
        bridge.process.kill()
    with running_bridge(tmp_path / "b", network) as bridge:
        sent.append(bridge.post("/send", chatId=ANNA, message="hi", key="k1").json()["messageId"])
    assert len(set(sent)) == 1
    assert len(network.texts()) == 1


@pytest.mark.parametrize(
    ("given", "prefix"),
    [
        pytest.param({}, DEFAULT_PREFIX, id="absent"),
        pytest.param({"WHATSAPP_REPLY_PREFIX": ""}, "", id="empty"),
        pytest.param({"WHATSAPP_REPLY_PREFIX": "Bot\\n--\\n"}, "Bot\n--\n", id="set"),
    ],
)
def test_the_prefix_is_absent_empty_or_set(
    network: Network, tmp_path: Path, given: dict[str, str], prefix: str
) -> None:
    with running_bridge(tmp_path / "b", network, **given) as bridge:
        message_id = bridge.post("/send", chatId=ANNA, message="hi").json()["messageId"]
        bridge.post("/edit", chatId=ANNA, messageId=message_id, message="hi there")
        bridge.post("/send", chatId=SELF, message="to me")
        network.write("self-1", "a question of mine", SELF)
        network.write("self-2", f"{prefix}not mine", SELF)
        network.write("elsewhere", "the owner writes to Anna", ANNA, fromMe=True)
        network.write("anna-1", "hello")
        found = eventually(lambda: found if "anna-1" in ids(found := bridge.get("/messages")) else None)
    assert network.texts() == [f"{prefix}hi"]
    assert network.lines("edited")[0]["text"] == f"{prefix}hi there"
    assert network.texts(SELF) == [f"{prefix}to me"]
    assert ids(found) == (["self-1", "anna-1"] if prefix else ["self-1", "self-2", "anna-1"])
    assert [message["isSelfChat"] for message in found["messages"]][:1] == [True]


def test_the_prefix_can_be_limited_to_the_chat_with_oneself(network: Network, tmp_path: Path) -> None:
    env = {"WHATSAPP_PREFIX_IN": "self", "WHATSAPP_REPLY_PREFIX": "Me: "}
    with running_bridge(tmp_path / "b", network, **env) as bridge:
        for chat in (ANNA, SELF):
            bridge.post("/send", chatId=chat, message="hi")
    assert (network.texts(ANNA), network.texts(SELF)) == (["hi"], ["Me: hi"])


def test_a_mention_in_a_group_is_recognised_and_the_other_calls_arrive(network: Network, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"png")
    with running_bridge(tmp_path / "b", network) as bridge:
        network.write("g1", "you there?", GROUP, mentionedIds=["49999@s.whatsapp.net"])
        network.write("g2", "a reply", GROUP, quotedParticipant="49999@s.whatsapp.net")
        network.write("g3", "among people", GROUP)
        found = eventually(lambda: found if len(ids(found := bridge.get("/messages"))) == 3 else None)
        assert [message["isMention"] for message in found["messages"]] == [True, True, False]
        assert bridge.post("/typing", chatId=ANNA).status_code == 200
        assert bridge.post("/read", chatId=ANNA, messageId="m1").status_code == 200
        media = {"filePath": str(picture), "mediaType": "image", "caption": "look"}
        assert bridge.post("/send-media", chatId=ANNA, **media).status_code == 200
        assert bridge.post("/send-media", chatId=ANNA, filePath="/nowhere").status_code == 400
        network.touch("refuse")
        assert bridge.post("/send", chatId=ANNA, message="hi").json()["isPermanent"] is True
    assert network.lines("media")[0]["text"] == f"{DEFAULT_PREFIX}look"


def test_the_bridge_ends_with_the_process_that_started_it(network: Network, tmp_path: Path) -> None:
    with running_bridge(tmp_path / "b", network) as bridge:
        assert bridge.process.stdin is not None
        bridge.process.stdin.close()
        assert bridge.process.wait(10) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(bridge.process.pid, signal.SIGCONT)


def test_without_its_package_the_bridge_says_what_is_missing(network: Network, tmp_path: Path) -> None:
    env = {"WHATSAPP_TRANSPORT_MODULE": "", "WHATSAPP_BAILEYS_PACKAGE": "a-package-that-is-not-there"}
    with running_bridge(tmp_path / "b", network, **env) as bridge:
        health = bridge.get("/health")
    assert health["status"] == "failed"
    assert "a-package-that-is-not-there" in health["error"]
    assert SECRET not in health["error"]
