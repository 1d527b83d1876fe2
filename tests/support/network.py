"""A network namespace beside this machine: what runs there is reached over one link, which can be cut."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.server import ROOT, Process

# Each process has its own: two runs on one machine do not remove the link of the other.
SUBNET = os.getpid() % 250 + 1
HERE = f"10.211.{SUBNET}.1"
THERE = f"10.211.{SUBNET}.2"
NAME = f"hermes-{os.getpid()}"
LINK = f"hm{os.getpid()}a"
PEER = f"hm{os.getpid()}b"


@dataclass(frozen=True)
class Namespace:
    python: str

    def cut(self) -> None:
        """Packets are lost in both directions; neither side notices by itself."""
        _ip("link", "set", LINK, "down")

    def join(self) -> None:
        _ip("link", "set", LINK, "up")

    def command(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", NAME, *command]

    def launch(self, args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> Process:
        with stdin.open("rb") as given, stdout.open("ab") as out, stderr.open("ab") as err:
            command = self.command(self.python, *args)
            return subprocess.Popen(command, cwd=ROOT, env=env, stdin=given, stdout=out, stderr=err)


def can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    _remove()
    made = subprocess.run(["ip", "netns", "add", NAME], capture_output=True, timeout=20)
    _remove()
    return made.returncode == 0


@contextmanager
def namespace(python: str) -> Iterator[Namespace]:
    _remove()
    _ip("netns", "add", NAME)
    try:
        _ip("link", "add", LINK, "type", "veth", "peer", "name", PEER, "netns", NAME)
        _ip("addr", "add", f"{HERE}/24", "dev", LINK)
        _ip("link", "set", LINK, "up")
        _ip("-n", NAME, "addr", "add", f"{THERE}/24", "dev", PEER)
        _ip("-n", NAME, "link", "set", PEER, "up")
        _ip("-n", NAME, "link", "set", "lo", "up")
        yield Namespace(python)
    finally:
        _remove()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr


def _remove() -> None:
    subprocess.run(["ip", "netns", "del", NAME], capture_output=True, timeout=20)
    subprocess.run(["ip", "link", "del", LINK], capture_output=True, timeout=20)
