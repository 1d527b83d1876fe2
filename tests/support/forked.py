"""Processes of Python, forked from one that has imported the libraries and the applications.

Imports are most of what a start costs. The settings and the reactor are made by every process anew.
"""

import atexit
import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

from gateway_app.runtime.memory import YOUNG_OBJECTS

ROOT = Path(__file__).resolve().parents[2]
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.support.preloaded"])


class Forked:
    """As much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> None:
        self.args = args
        self._process = context.Process(target=_run, args=(args, env, stdin, stdout, stderr), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> None:
    """In the new process: become what ``python`` would be with these arguments."""
    gc.freeze()  # a collection would walk through all the libraries, and copy their pages
    gc.set_threshold(YOUNG_OBJECTS)  # as `serve` does where nothing is frozen yet
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    for number, path, flags in ((0, stdin, os.O_RDONLY), (1, stdout, _APPENDING), (2, stderr, _APPENDING)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 -- multiprocessing has put another one there
    os.environ.clear()
    os.environ.update(env)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    from tests.support.preloaded import begin_anew  # its import makes a process like this one

    begin_anew()
    try:
        if args[0] == "-m":
            sys.argv = args[1:]
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = args
            runpy.run_path(str(ROOT / args[0]), run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves without them


_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND
