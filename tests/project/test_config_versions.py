"""The versions of config.yaml: a start names what is new, and asked for by ``manage.py configure``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config import known_keys
from gateway_app.config.versions import NEWEST, VERSIONS, config_version, version_notice
from gateway_app.config.yaml_edits import CannotEdit, with_key
from tests.support.server import Server

SECTIONS = {
    "": known_keys.TOP_LEVEL,
    "model": known_keys.MODEL,
    "fallback_models": known_keys.FALLBACK_MODEL,
    "profiles.NAME": known_keys.PROFILE,
    "mcp_servers.NAME": known_keys.MCP_SERVER,
    "platforms": known_keys.PLATFORMS,
    "platforms.api_server": known_keys.API_SERVER,
    "platforms.fake": known_keys.FAKE,
    "whatsapp": known_keys.WHATSAPP,
}
OLD = """\
# My file.
model:  # what answers
  provider: ollama   # on this machine
  default: llama3.2
whatsapp:
    # numbers of the family
    owner: anna
"""


def test_every_key_has_a_version_and_every_version_only_keys_that_exist() -> None:
    """A key without a version would never be announced; the newest number is computed from the same table."""
    known = {f"{path}.{key}".removeprefix(".") for path, section in SECTIONS.items() for key in section.keys}
    listed = [key.path for keys in VERSIONS.values() for key in keys]
    assert len(listed) == len(set(listed))
    assert set(listed) == known
    assert list(VERSIONS) == list(range(1, NEWEST + 1))
    sections = [value for value in vars(known_keys).values() if isinstance(value, known_keys.Section)]
    assert all(section in SECTIONS.values() or section is known_keys.MODEL_OPTIONS for section in sections)


@pytest.mark.parametrize(
    ("config", "notice"),
    [
        ({}, ""),
        ({"_config_version": NEWEST}, ""),
        ({"model": {}}, f"config.yaml has version 1; version {NEWEST} adds whatsapp.enabled, whatsapp.transport"),
        ({"_config_version": 50}, f"config.yaml has version 50, and this server knows up to {NEWEST}"),
    ],
)
def test_a_start_names_what_is_new_or_unknown(config: dict[str, Any], notice: str) -> None:
    assert version_notice(config).startswith(notice)
    assert bool(version_notice(config)) is bool(notice)


@pytest.mark.parametrize("version", ["2", True, -1, 1.5])
def test_a_version_that_is_no_number_is_refused(version: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="_config_version"):
        config_version({"_config_version": version})


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        ("_config_version", 2, OLD + "_config_version: 2\n"),
        ("whatsapp.enabled", True, OLD.replace("whatsapp:\n", "whatsapp:\n    enabled: true\n")),
        ("model.base_url", "http://x/v1", OLD.replace("answers\n", "answers\n  base_url: http://x/v1\n")),
        ("fresh.list", ["+49"], OLD + "fresh:\n  list: ['+49']\n"),
    ],
)
def test_a_key_is_added_and_everything_else_stays_as_it_is(path: str, value: Any, changed: str) -> None:
    assert with_key(OLD, path, value) == changed


def test_a_file_in_another_form_is_not_broken() -> None:
    with pytest.raises(CannotEdit, match=r"whatsapp\.enabled can't be added"):
        with_key("whatsapp: {owner: anna}\n", "whatsapp.enabled", True)
    assert with_key("_config_version: 1 # old\na: 1\n", "_config_version", 2) == "_config_version: 2\na: 1\n"
    assert yaml.safe_load(with_key("", "a", "x: y")) == {"a": "x: y"}


def test_configure_walks_through_what_is_new(tmp_path: Path) -> None:
    server = Server(tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text("# Mine.\nplatforms:  # none yet\n  fake:\n    enabled: false\n")
    path.chmod(0o600)
    done = server.managed("configure", stdin=b'true\n[\nbridge\n["+491700"]\n\n')
    assert done.returncode == 0, done.stderr.decode()
    assert yaml.safe_load(path.read_text()) == {
        "platforms": {"fake": {"enabled": False}},
        "whatsapp": {"enabled": True, "transport": "bridge", "allowed_senders": ["+491700"]},
        "_config_version": NEWEST,
    }
    assert path.read_text().startswith("# Mine.\nplatforms:  # none yet\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "That is no YAML value" in done.stderr.decode()
    assert b"which is the newest" in server.managed("configure").stdout
    path.write_text("_config_version: 50\n")
    assert b"config.yaml has version 50" in server.managed("configure").stderr


def test_a_start_without_a_file_has_no_notice(make_server: Callable[..., Server]) -> None:
    assert "config.yaml" not in make_server().log
