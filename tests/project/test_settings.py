"""Settings are strict: a bad value stops the start and names its variable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.migrated_database import Database
from tests.support.server import ROOT, Server
from tests.support.settings_check import check_settings

# In a process of its own, without settings: imports every reader, then asks Django whether any of them read a setting.
IMPORT_READERS = """
import importlib, pkgutil
from django.conf import settings
import gateway_app.config
for module in pkgutil.iter_modules(gateway_app.config.__path__):
    importlib.import_module(f"gateway_app.config.{module.name}")
print(settings.configured)
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_SERVER_PORT", "eighty"),
        ("API_SERVER_PORT", "70000"),
        ("HERMES_PROVIDER", "oracle"),
        ("HERMES_UNKNOWN_MODEL", "maybe"),
        ("HERMES_LEASE_SECS", "soon"),
        ("HERMES_SWEEP_SECS", "0"),
        ("HERMES_CLIENT_WRITE_TIMEOUT", "never"),
        ("HERMES_MAX_CONCURRENT", "-1"),
        ("HERMES_AUTH", "perhaps"),
        ("DATABASE_URL", "mysql://somewhere/db"),
        ("API_SERVER_MODEL_NAME", ""),
        ("API_SERVER_KEY_FILE", "/nonexistent"),
        ("HERMES_PUBLIC_URL", "hermes.example"),
        ("HERMES_PUBLIC_URL", "https://hermes.example/below"),
        ("HERMES_PUBLIC_URL", "ftp://hermes.example"),
        ("HERMES_PUBLIC_URL", "https://*.example"),
    ],
)
def test_a_bad_value_stops_the_start_and_names_the_variable(tmp_path: Path, name: str, value: str) -> None:
    done = check_settings(tmp_path, **{name: value})
    assert done.returncode != 0
    assert name in done.stderr.splitlines()[-1]


def test_a_weak_key_or_no_auth_is_refused_off_loopback(tmp_path: Path) -> None:
    weak = check_settings(tmp_path, API_SERVER_HOST="0.0.0.0", API_SERVER_KEY="short")
    assert "API_SERVER_KEY" in weak.stderr.splitlines()[-1]
    any_name = check_settings(tmp_path, API_SERVER_ALLOWED_HOSTS="*", HERMES_AUTH="off")
    assert any_name.returncode != 0
    assert "HERMES_AUTH" in any_name.stderr.splitlines()[-1]
    assert "API_SERVER_ALLOWED_HOSTS" in any_name.stderr.splitlines()[-1]
    none = check_settings(tmp_path, API_SERVER_HOST="0.0.0.0", HERMES_AUTH="off")
    assert "HERMES_AUTH" in none.stderr.splitlines()[-1]
    assert check_settings(tmp_path, API_SERVER_HOST="0.0.0.0").returncode == 0


def test_a_public_address_is_as_good_as_off_loopback(tmp_path: Path) -> None:
    public = {"HERMES_PUBLIC_URL": "https://hermes.example"}
    assert "API_SERVER_KEY" in check_settings(tmp_path, API_SERVER_KEY="short", **public).stderr.splitlines()[-1]
    assert "HERMES_AUTH" in check_settings(tmp_path, HERMES_AUTH="off", **public).stderr.splitlines()[-1]
    assert check_settings(tmp_path, **public).returncode == 0


def test_config_yaml_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: {provider: oracle}\n")
    assert "HERMES_PROVIDER" in check_settings(tmp_path).stderr.splitlines()[-1]
    assert check_settings(tmp_path, HERMES_PROVIDER="builtin").returncode == 0
    (tmp_path / "config.yaml").write_text("- not a mapping\n")
    assert "config.yaml" in check_settings(tmp_path).stderr.splitlines()[-1]


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key-from-a-file\n")
    server = Server(tmp_path, API_SERVER_KEY_FILE=str(tmp_path / "key"))
    shown = server.manage("shell", "-v0", "-c", "from django.conf import settings; print(settings.API_SERVER_KEY)")
    assert shown == "a-key-from-a-file"


def test_a_secret_that_can_not_be_read_stops_the_start_with_the_remedy(tmp_path: Path) -> None:
    """As after a start with another account; root could read any file, but not a folder."""
    (tmp_path / "secret_key").mkdir()
    [line] = check_settings(tmp_path).stderr.splitlines()
    assert line.startswith(f"FAIL settings  {tmp_path}/secret_key cannot be read: ")
    assert "chown" in line


def test_serving_an_unmigrated_database_says_what_to_do(tmp_path: Path) -> None:
    server = Server(tmp_path)
    done = server.managed("serve")
    assert done.returncode == 1
    assert b"manage.py migrate" in done.stderr


@pytest.mark.any_database
def test_a_taken_port_says_what_to_do(server: Server, database: Database, tmp_path: Path) -> None:
    other = database.server(tmp_path / "home", Server, API_SERVER_PORT=str(server.port))
    done = other.managed("serve")
    assert done.returncode == 1
    assert b"API_SERVER_PORT" in done.stderr


@pytest.mark.parametrize(
    "env", [{"HERMES_HOME": "/proc/hermes-home"}, {"DATABASE_URL": "sqlite:////proc/hermes-data/hermes.sqlite3"}]
)
def test_a_folder_that_can_not_be_written_does_not_cost_the_start(tmp_path: Path, env: dict[str, str]) -> None:
    """Not even root can make a folder under /proc."""
    server = Server(tmp_path, **env, TMPDIR=str(tmp_path))
    try:
        server.start()
        [line] = [line for line in server.log.splitlines() if "DEGRADED: /proc/hermes-" in line]
        assert "(chown)" in line
        assert next(iter(env)) in line
        [folder] = tmp_path.glob("hermes-site-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert str(folder) in server.log
        key = (tmp_path if "DATABASE_URL" in env else folder) / "api_key"
        with server.http(key.read_text().strip()) as client:
            answer = client.post("/v1/responses", json={"input": "hello"})
        assert answer.json()["status"] == "completed"
        assert (folder / "hermes.sqlite3").exists()
    finally:
        server.kill()


def test_the_readers_of_the_configuration_need_no_settings() -> None:
    """Settings import them: a reader that read a setting, or imported a module that does, could not be imported."""
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", IMPORT_READERS]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\n"
