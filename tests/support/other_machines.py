"""Processes as on other machines: with pids that the others do not know, or with a clock that is wrong."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.cluster import WorkerProcess
from tests.support.server import ROOT, Process, Server

ISOLATE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def can_isolate() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ISOLATE, "true"], capture_output=True, timeout=20).returncode == 0


def isolated(args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> Process:
    command = [*ISOLATE, sys.executable, *args]
    with stdin.open("rb") as given, stdout.open("ab") as out, stderr.open("ab") as err:
        return subprocess.Popen(command, cwd=ROOT, env=env, stdin=given, stdout=out, stderr=err)


class IsolatedServer(Server):
    """In a PID namespace of its own, as in a container, with the hostname of the others."""

    launch = staticmethod(isolated)


class IsolatedWorker(WorkerProcess):
    """Its end is known by its silence alone."""

    launch = staticmethod(isolated)


class SkewedServer(Server):
    """On a host whose clock is off by ``TEST_CLOCK_SKEW_SECS``."""

    command = ("-m", "tests.support.skewed_clock", "serve")


class SkewedWorker(WorkerProcess):
    command = ("-m", "tests.support.skewed_clock", "runworker", "generate")
