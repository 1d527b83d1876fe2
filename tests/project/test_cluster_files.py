"""The files of deploy/ and docs/cluster.md: what they name exists, and the programs accept them."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from gateway_app.management.local_cluster.programs import find_program
from tests.support.server import ROOT

DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "cluster.md"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
OF_SERVICES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "REDIS_PASSWORD"}  # of other images
SETTING = re.compile(r"\b(?:HERMES|API_SERVER|DATABASE|REDIS|GATEWAY)_[A-Z_]+\b")


@pytest.fixture(scope="module")
def variables() -> set[str]:
    rows = re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE)
    return set(rows)


def deployed_files() -> Iterator[Path]:
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file():
            yield path


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())
    return read


@pytest.mark.parametrize("path", [PAGE, *deployed_files()], ids=lambda path: path.name)
def test_every_setting_and_command_that_is_named_exists(path: Path, variables: set[str]) -> None:
    text = path.read_text()
    assert {name.removesuffix("_FILE") for name in SETTING.findall(text)} - OF_SERVICES <= variables
    commands = set(re.findall(r"manage\.py[\", ]+(\w+)", text))
    assert commands <= set(get_commands())
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= set(targets)


def test_every_part_of_the_page_has_its_file() -> None:
    text = PAGE.read_text()
    for path in deployed_files():
        assert f"../{path.relative_to(ROOT)}" in text, path


def test_the_services_of_the_compose_file_depend_on_each_other_and_use_files_that_exist() -> None:
    services = compose()["services"]
    assert set(services) == {"postgres", "redis", "migrate", "web", "worker", "proxy"}
    volumes = set(compose()["volumes"])
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in volumes or (DEPLOY / "docker" / source).exists(), volume
    # While the image creates the database, its server answers on a local socket alone.
    assert "-h 127.0.0.1" in " ".join(services["postgres"]["healthcheck"]["test"])
    build = services["web"]["build"]
    assert (DEPLOY / "docker" / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).exists()


def test_the_image_gets_each_file_that_it_copies() -> None:
    """An ignore file that leaves out everything else."""
    passed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for line in re.findall(r"^COPY (.*)$", (DEPLOY / "docker" / "Dockerfile").read_text(), re.MULTILINE):
        copied.update(line.split()[:-1])
    assert copied == passed
    assert [name for name in copied if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_can_be_read_and_start_a_command(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(path.read_text())
    assert {"Unit", "Service"} <= set(unit.sections())
    program, script, command, *_ = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/.venv/bin/python")
    assert (ROOT / script).exists()
    assert command in get_commands()
    assert unit["Service"]["EnvironmentFile"] == "/etc/hermes-site.env"


@pytest.mark.parametrize("name", ["nginx/hermes.conf", "docker/nginx.conf"])
def test_nginx_accepts_the_example(name: str, tmp_path: Path) -> None:
    program = find_program("nginx")
    if program is None:
        pytest.skip("nginx is not on this machine: apt-get install nginx-light")
    example = (DEPLOY / name).read_text().replace("/etc/ssl/", f"{tmp_path}/").replace("web:8642", "127.0.0.1:8642")
    (tmp_path / "example.conf").write_text(example)
    shutil.copy(DEPLOY / "nginx" / "hermes-proxy.conf", tmp_path)
    make_certificate(tmp_path)
    paths = [f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    http = "\n".join(["access_log off;", *paths, "include example.conf;"])
    main = f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{http}\n}}\n"
    (tmp_path / "nginx.conf").write_text(main)
    command = [program, "-t", "-q", "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def make_certificate(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=hermes.example", "-days", "1"]
    command += ["-keyout", str(folder / "hermes.example.key"), "-out", str(folder / "hermes.example.pem")]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def test_caddy_accepts_the_example() -> None:
    program = find_program("caddy")
    if program is None:
        pytest.skip("Caddy is not on this machine: apt-get install caddy")
    command = [program, "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "caddy" / "Caddyfile")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
