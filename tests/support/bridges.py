"""WhatsApp by the real bridge process, with a folder in the place of WhatsApp's network."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.server import ROOT, Process, Server, eventually, popen

PROGRAM = ROOT / "gateway_app/platforms/whatsapp/bridge.mjs"
TRANSPORT = ROOT / "tests/support/bridge/fake_transport.mjs"
SECRET = "secret-of-the-tests"
ANNA = "491700@s.whatsapp.net"
SELF = "49999@s.whatsapp.net"
GROUP = "1203630@g.us"


class Network:
    """The folder: what people write goes in, what the account sends comes out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, message_id: str, text: str, chat: str = ANNA, **fields: Any) -> None:
        message = {
            "messageId": message_id,
            "chatId": chat,
            "senderId": fields.pop("sender", chat),
            "fromMe": chat == SELF,
            "isGroup": chat == GROUP,
            "body": text,
            "timestamp": time.time(),
            **fields,
        }
        with (self.folder / "in.jsonl").open("a") as file:
            file.write(json.dumps(message) + "\n")

    def touch(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / "out.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in found if name in line]

    def texts(self, chat: str = ANNA) -> list[str]:
        return [line["text"] for line in self.lines("sent") if line["chat"] == chat]

    def final_texts(self, chat: str = ANNA) -> list[str]:
        """What a person sees: each message with its last edit."""
        shown = {line["sent"]: line["text"] for line in self.lines("sent") if line["chat"] == chat}
        for line in self.lines("edited"):
            if line["chat"] == chat:
                shown[line["edited"]] = line["text"]
        return list(shown.values())

    def until_sent(self, count: int, chat: str = ANNA, secs: float = 30) -> list[str]:
        eventually(lambda: len(self.texts(chat)) >= count, secs, f"{count} messages to {chat}")
        return self.texts(chat)


class Bridge:
    """The program alone, as the server talks to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str) -> None:
        self.process = process
        self.url = url

    def get(self, path: str, **params: str) -> Any:
        return self.request("GET", path, params=params).json()

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.request("POST", path, json=body)

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {SECRET}"} | given.pop("headers", {})
        return httpx.request(method, self.url + path, headers=headers, timeout=10, **given)


@contextmanager
def running_bridge(folder: Path, network: Network, **env: str) -> Iterator[Bridge]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WHATSAPP_")}
    own = {
        "WHATSAPP_BRIDGE_SECRET": SECRET,
        "WHATSAPP_BRIDGE_FOLDER": str(folder),
        "WHATSAPP_TRANSPORT_MODULE": str(TRANSPORT),
        "FAKE_NETWORK": str(network.folder),
    }
    with subprocess.Popen(
        ["node", str(PROGRAM)], env=inherited | own | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["port"]
            yield Bridge(process, f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def bridge_config(**options: Any) -> str:
    section = {
        "enabled": True,
        "transport": "bridge",
        "transport_module": str(TRANSPORT),
        "allowed_senders": ["491700"],
        **options,
    }
    return json.dumps({"whatsapp": section})


class PlatformProcess:
    """``manage.py runplatform whatsapp`` beside a server, on the same home and database."""

    def __init__(self, server: Server, network: Network) -> None:
        self.server = server
        self.network = network
        self.log_path = server.home / "platform.log"
        self.process: Process | None = None

    def begin(self) -> "PlatformProcess":
        env = self.server.env | {"FAKE_NETWORK": str(self.network.folder)}
        command = ["manage.py", "runplatform", "whatsapp"]
        self.process = popen(command, env, Path(os.devnull), self.log_path, self.log_path)
        return self

    def until_started(self) -> None:
        eventually(self.bridge_pids, 30, f"the bridge (see {self.log_path})")

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def bridge_pids(self) -> list[int]:
        return [line["started"] for line in self.network.lines("started")]

    def kill(self, number: int = 9) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(30)
            self.process = None
