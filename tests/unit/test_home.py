"""``HERMES_HOME``, and the command that a first start prints for it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway_app.config.home import open_home
from gateway_app.operations.first_start import greeting


def test_a_tilde_that_no_shell_has_replaced_is_the_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an environment file of systemd or Docker."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    home, reason = open_home({"HERMES_HOME": "~/hermes"}, tmp_path / "var")
    assert (home, reason) == (tmp_path / "hermes", "")


def test_the_command_that_is_printed_reads_the_key_of_any_folder(tmp_path: Path, settings: Any) -> None:
    settings.HERMES_HOME = tmp_path / "a folder"
    settings.HERMES_HOME.mkdir()
    (settings.HERMES_HOME / "api_key").write_text(settings.API_SERVER_KEY)
    command = greeting("", shows_secrets=False).splitlines()[-1]
    shown = subprocess.run(
        ["sh", "-c", f"curl() {{ echo $*; }}; {command}"], capture_output=True, text=True, check=True
    )
    assert f"Bearer {settings.API_SERVER_KEY}" in shown.stdout, shown.stderr
