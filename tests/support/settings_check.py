"""``manage.py check`` with given environment variables."""

import subprocess
from pathlib import Path

from tests.support.server import Server


def check_settings(home: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    done = Server(home, **{"DJANGO_SETTINGS_MODULE": "hermes_site.settings", **env}).managed("check")
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
