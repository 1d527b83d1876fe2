"""What the server keeps is readable by its own account alone, and no journal gets a secret."""

import os
import pty
import stat
from pathlib import Path

import pytest

from gateway_app.config.secrets import kept_secret
from tests.support.migrated_database import migrated_home
from tests.support.server import Server, copy_home, eventually

DATABASE_FILES = ("hermes.sqlite3", "hermes.sqlite3-wal", "hermes.sqlite3-shm")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fresh(home: Path) -> Server:
    home.mkdir()
    server = Server(home)
    previous = os.umask(0o022)
    try:
        server.manage("migrate", "--verbosity", "0")
        return server.start()
    finally:
        os.umask(previous)


def test_the_database_is_private_whatever_the_umask(tmp_path: Path) -> None:
    server = fresh(tmp_path / "home")
    try:
        with server.http() as client:
            assert client.post("/v1/responses", json={"input": "hello"}).status_code == 200
        modes = {name: mode_of(server.home / name) for name in DATABASE_FILES}
        assert set(modes.values()) == {0o600}, modes
    finally:
        server.kill()
    for name in DATABASE_FILES:
        (server.home / name).chmod(0o644)  # as an older version made them
    server.manage("check")
    assert {mode_of(server.home / name) for name in DATABASE_FILES} == {0o600}


def test_a_log_file_gets_no_secret(templates: Path, tmp_path: Path) -> None:
    server = Server(copy_home(migrated_home(templates), tmp_path / "home")).start()
    try:
        secrets = [(server.home / name).read_text().split()[-1] for name in ("api_key", "admin_login")]
        shown = eventually(lambda: "api_key" in server.log and server.log)
        assert all(secret not in shown for secret in secrets)
        assert "admin_login" in shown
    finally:
        server.kill()


def test_the_terminal_of_the_first_start_shows_the_secrets_once(templates: Path, tmp_path: Path) -> None:
    home = copy_home(migrated_home(templates), tmp_path / "home")
    server = Server(home)
    shown = started_in_a_terminal(server)
    key = (home / "api_key").read_text().strip()
    assert key in shown
    assert key not in started_in_a_terminal(server)


def started_in_a_terminal(server: Server) -> str:
    """All that a start prints, up to its last line."""
    ours, theirs = pty.openpty()
    try:
        server.log_path = Path(os.ttyname(theirs))
        server.start()
        printed = b""
        while b'"stream": true}' not in printed:
            printed += os.read(ours, 4096)
        return printed.decode()
    finally:
        server.kill()
        os.close(ours)
        os.close(theirs)


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "api_key").write_text("\n")
    with pytest.raises(Exception, match="api_key is empty"):
        kept_secret(tmp_path / "api_key")
    failed = Server(tmp_path).managed("check")
    assert failed.returncode != 0
    assert b"api_key is empty" in failed.stderr
