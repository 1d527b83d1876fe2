"""Children: programs that run until the cluster ends, each in a session of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from django.core.management.base import CommandError

READY_SECS = 60.0
POLL_SECS = 0.05
STOP_SECS = 40.0  # longer than the grace of a process that drains
LAST_LINES = 15  # of a log that explains why a program ended


@dataclass
class Child:
    """One program. Ctrl-C on the terminal does not reach it: the cluster ends it in its order."""

    name: str
    command: Sequence[str]
    log: Path
    is_ready: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    user: str = ""  # where root starts a program that refuses to run as root
    stop_signal: int = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                [*_ending_with_parent(self.user, self.stop_signal), *self.command],
                cwd="/" if self.user else None,
                env=os.environ | self.env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stdin:
            stdin.write(self.stdin.encode())

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECS
        while not self.is_ready():
            if not self.is_running:
                raise CommandError(f"{self.name} did not start:\n{self.last_lines()}")
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{self.name} is not ready after {READY_SECS:g} s; its log is {self.log}"
                )
            time.sleep(POLL_SECS)

    def last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    @property
    def has_exited_well(self) -> bool:
        return self.process is not None and self.process.returncode == 0

    def exit_reason(self) -> str:
        assert self.process is not None
        code = self.process.returncode
        if code < 0:
            return signal.Signals(-code).name
        return f"exit code {code}"

    def end(self) -> None:
        """Ask it to end; does not wait."""
        if self.is_running:
            assert self.process is not None
            self.process.send_signal(self.stop_signal)

    def wait(self) -> None:
        if self.process is not None:
            try:
                self.process.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """With all that it started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _ending_with_parent(user: str, number: int) -> list[str]:
    """If the cluster itself is killed, the kernel ends its programs."""
    setpriv = shutil.which("setpriv")
    if setpriv is None and user:
        raise CommandError("setpriv is not on this machine: apt-get install util-linux")
    if setpriv is None:
        return []
    command = [setpriv, "--pdeathsig", signal.Signals(number).name]
    if user:
        command += [f"--reuid={user}", f"--regid={user}", "--init-groups"]
    return [*command, "--"]


def free_ports(first: int) -> Iterator[int]:
    """The ports from this one on, on which no other program listens."""
    for port in range(first, 65536):
        if is_free(port):
            yield port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
