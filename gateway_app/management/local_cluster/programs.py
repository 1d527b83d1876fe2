"""Programs of the cluster: found on this machine, or installed by apt-get where that is allowed."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from django.core.management.base import CommandError

Report = Callable[[str], object]

# Debian keeps the programs of PostgreSQL off the path, and those of administrators in sbin.
FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
POSTGRESQL = Path("/usr/lib/postgresql")
INSTALL_SECS = 600


def is_root() -> bool:
    return os.geteuid() == 0


def find_program(name: str) -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    kept = sorted(POSTGRESQL.glob(f"*/bin/{name}"))
    if kept:
        return str(kept[-1])
    return shutil.which(name, path=path)


def require_program(name: str, package: str, report: Report) -> str:
    """The path of a program. As root on Debian, a missing one is installed."""
    found = find_program(name)
    if found is not None:
        return found
    if not is_root() or shutil.which("apt-get") is None:
        raise CommandError(f"{name} is not on this machine: apt-get install {package}")
    report(f"Installing {package} ...")
    _apt_get("update", "-qq")
    _apt_get("install", "-y", "-qq", package)
    found = find_program(name)
    if found is None:
        raise CommandError(f"{package} is installed, but has no program {name}.")
    return found


def _apt_get(*arguments: str) -> None:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(  # noqa: S603
        ["apt-get", *arguments],  # noqa: S607
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECS,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()}")
