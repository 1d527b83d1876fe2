"""A backup made while the server runs, and what a restore of it gives back."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checker import History, check_all
from tests.support.databases import find_program
from tests.support.migrated_database import Database
from tests.support.scripted_requests import start_background
from tests.support.server import Server, eventually, text


def test_a_backup_of_a_running_server_restores(
    make_server: Callable[..., Server], database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_program("pg_dump")
    if database.cluster is not None:
        if programs is None:
            pytest.skip("pg_dump is not on this machine: apt-get install postgresql-client")
        monkeypatch.setenv("PATH", f"{Path(programs).parent}{os.pathsep}{os.environ['PATH']}")
    server, history = make_server(), History()
    ended = start_background(server, {"say": "kept"})
    server.ended(ended)
    running = start_background(server, {"say": "half "}, {"gate": "rest"}, {"say": "whole"})
    eventually(lambda: text(server.body(running)) == "half ")
    replayed = server.replay(ended)
    file = tmp_path / "backup"
    server.env["PATH"] = os.environ["PATH"]
    assert server.manage("backup", str(file)).startswith("Wrote ")
    assert file.stat().st_mode & 0o777 == 0o600
    restored = _restored(server, database, file, tmp_path / "restored")
    server.kill()
    restored.start()
    try:
        restored.open_gate("rest")
        assert restored.replay(ended) == replayed
        assert text(restored.ended(running, 30)) == "half whole"
        history.note(ended)
        history.note(running)
        assert check_all(restored, history) == 2
    finally:
        restored.kill()


def _restored(server: Server, database: Database, file: Path, home: Path) -> Server:
    """As docs/operations.md describes it."""
    home.mkdir()
    shutil.copy(server.home / "api_key", home)
    if database.cluster is None:
        shutil.copy(file, home / "hermes.sqlite3")
        return Server(home)
    database.cluster.execute("CREATE DATABASE restored")
    url = database.cluster.url("restored")
    program = find_program("pg_restore")
    assert program is not None
    subprocess.run([program, "--no-owner", "--dbname", url, str(file)], check=True, capture_output=True)
    return Server(home, DATABASE_URL=url)


def test_a_backup_overwrites_nothing(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server()
    file = tmp_path / "precious"
    file.write_text("kept")
    with pytest.raises(AssertionError, match="does not exist"):
        server.manage("backup", str(file))
    assert file.read_text() == "kept"
