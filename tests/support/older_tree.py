"""An older version of this project, taken from the history of the repository, and its server processes."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from tests.support.server import ROOT, Process, Server


def unpacked(commit: str, folder: Path) -> Path | None:
    """The tree of a commit; nothing where the history is not here, such as in an archive."""
    made = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if made.returncode:
        return None
    with tarfile.open(fileobj=BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def server_of(tree: Path) -> type[Server]:
    """Servers that run the code of the tree, with the packages of this one."""

    def launch(args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> Process:
        with stdin.open("rb") as given, stdout.open("ab") as out, stderr.open("ab") as err:
            own = {**env, "PYTHONPATH": os.fspath(tree)}
            return subprocess.Popen([sys.executable, *args], cwd=tree, env=own, stdin=given, stdout=out, stderr=err)

    class OlderServer(Server):
        pass

    OlderServer.launch = staticmethod(launch)
    return OlderServer
