"""A start that goes wrong: one line, with the remedy."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from gateway_app.config.network import http_url
from gateway_app.management.serving import listening_remedy
from gateway_app.operations.model_banner import REAL_MODEL
from gateway_app.operations.model_probe import report_models
from tests.support.answering_model import AnsweringModel
from tests.support.server import ROOT, Server, eventually

pytestmark = pytest.mark.any_database

MODEL = {
    "provider": "custom",
    "model": "m-1",
    "base_url": "",
    "api_key": "wrong",
    "api_mode": "chat_completions",
    "options": {},
}
UNPRIVILEGED = 65534  # a user who owns nothing
MAKE_SECS = 30


def test_a_taken_port_is_reported_with_the_variable_that_chooses_another(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        env = server.env
        server.env = env | {"API_SERVER_PORT": str(port)}
        done = server.managed("serve")
        server.env = env
    assert done.returncode == 1
    [line] = [line for line in done.stderr.decode().splitlines() if "Cannot listen" in line]
    assert line == (
        f"CommandError: Cannot listen on 127.0.0.1:{port}: Address already in use. "
        "Is another server running? API_SERVER_PORT chooses another port."
    )
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("Address already in use", "Is another server running? PORT chooses another port."),
        ("Permission denied", "Ports below 1024 need more rights. PORT chooses another port."),
        ("Cannot assign requested address", "API_SERVER_HOST must be an address of this machine."),
        ("Name or service not known", "API_SERVER_HOST must be an address of this machine."),
    ],
)
def test_the_remedy_fits_the_reason_why_the_server_cannot_listen(reason: str, remedy: str) -> None:
    assert listening_remedy(reason, "PORT") == remedy


def test_an_address_of_ipv6_is_printed_as_a_url() -> None:
    assert http_url("::1", 8642) == "http://[::1]:8642"
    assert http_url("localhost", 8642) == "http://localhost:8642"


def test_a_model_that_cannot_be_reached_is_one_line_and_no_obstacle(make_server: Callable[..., Server]) -> None:
    address = "http://127.0.0.1:1/v1"
    server = make_server(HERMES_PROVIDER="custom", HERMES_MODEL="m-1", HERMES_BASE_URL=address, TEST_MODEL_PROBE="1")
    log = eventually(lambda: server.log if "cannot be reached" in server.log else "")
    [line] = [line for line in log.splitlines() if "cannot be reached" in line]
    assert f"model: {address} cannot be reached: " in line
    assert line.endswith("Is its server running? Check HERMES_BASE_URL, the network and its proxy.")


def test_a_model_that_refuses_the_key_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with AnsweringModel(key="right") as model, override_settings(HERMES_MODELS=(MODEL | {"base_url": model.url},)):
        report_models()
    [line] = caplog.messages
    assert "refuses the key (401). Check HERMES_API_KEY." in line
    assert "wrong" not in line


def test_the_first_start_names_the_next_steps(make_server: Callable[..., Server]) -> None:
    server = make_server()
    log = eventually(lambda: server.log if "Try it" in server.log else "")
    assert f"  playground   {server.url}/chat, with the admin login\n" in log
    assert "docs/guide/README.md" in log
    assert "HERMES_PROVIDER=ollama\n" in log


def test_the_lines_for_a_real_model_work_as_they_are_pasted_into_a_shell() -> None:
    """A variable that is set but not exported would not reach the server."""
    lines = ["make() { env; }", *REAL_MODEL]
    done = subprocess.run(["sh"], input="\n".join(lines), env={}, capture_output=True, text=True, timeout=MAKE_SECS)
    assert {"HERMES_PROVIDER=ollama", "HERMES_MODEL=the-name-of-your-model"} <= set(done.stdout.splitlines())


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A folder in which nothing is installed yet, and that other users can enter."""
    with tempfile.TemporaryDirectory(prefix="hermes-checkout-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for file in ("Makefile", "requirements.txt"):
            shutil.copy(ROOT / file, folder)
        yield folder


def made(folder: Path, python: str, user: int | None = None) -> "subprocess.CompletedProcess[str]":
    command = ["make", "run", f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=MAKE_SECS, user=user)


def test_an_old_python_is_refused_before_anything_is_installed(checkout: Path) -> None:
    old = checkout / "python3.9"
    old.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 9); exec(sys.argv[1])' \"$2\"\n"
    )
    old.chmod(0o755)
    done = made(checkout, str(old))
    assert done.returncode != 0
    line = done.stderr.splitlines()[0]
    assert line.startswith(f"Hermes Site needs Python 3.11 or newer, and {old} is older or missing.")
    assert line.endswith("make run PYTHON=python3.11")
    assert not (checkout / ".venv").exists()


def test_a_folder_that_cannot_be_written_is_named(checkout: Path) -> None:
    checkout.chmod(0o555)
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    done = made(checkout, python, user)
    checkout.chmod(0o755)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith(f"{checkout} cannot be written. Change its owner")
