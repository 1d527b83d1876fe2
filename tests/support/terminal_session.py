"""A program on a terminal of its own, where Ctrl-C is a key."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.support.server import ROOT, eventually

CTRL_C = b"\x03"
START_SECS = 90
END_SECS = 40


class TerminalSession:
    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        self.output = ""
        self._master, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, *command],
            cwd=ROOT,
            env=env,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        eventually(lambda: text in self.output or self.process.poll() is not None, START_SECS, text)
        assert text in self.output, self.output

    def press_ctrl_c(self) -> None:
        os.write(self._master, CTRL_C)

    def exit_code(self) -> int:
        code = self.process.wait(END_SECS)
        self._reader.join(END_SECS)
        return code

    def kill(self) -> None:
        """Without its children: they have sessions of their own."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self._master)

    def _read(self) -> None:
        with suppress(OSError):  # the end of a terminal
            while received := os.read(self._master, 65536):
                self.output += received.decode(errors="replace").replace("\r\n", "\n")


# A new session has no terminal until it opens one; then the program takes its place.
_ON_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execvp(sys.argv[1], sys.argv[1:])"


def processes_with(text: str) -> list[str]:
    """The command lines of all processes whose arguments or environment have this text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if text.encode() in command + (folder / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found
