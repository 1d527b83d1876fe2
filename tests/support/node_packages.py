"""Programs of Node.js with the packages of tests/support/clients/node, outside the repository."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import ROOT

SOURCE = ROOT / "tests/support/clients/node"
INSTALL = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
INSTALL_ENV = {"npm_config_fetch_retry_mintimeout": "1000", "npm_config_fetch_retry_maxtimeout": "5000"}
INSTALL_SECS = 120
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT")

needs_node = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="node and npm are not on PATH"
)


def install_node_client(folder: Path) -> None:
    """A copy of the client with its dependencies; skips the test where the registry can't be reached."""
    ignored = shutil.ignore_patterns("node_modules", "package-lock.json")
    shutil.copytree(SOURCE, folder, ignore=ignored, dirs_exist_ok=True)
    install_packages(folder)


def install_packages(folder: Path, *packages: str) -> None:
    """Those named, or those of the folder's package.json."""
    command = (*INSTALL, *packages)
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | INSTALL_ENV, capture_output=True, text=True, timeout=INSTALL_SECS
        )
        problem = done.stderr if done.returncode else ""
        network = next((code for code in UNREACHABLE if f"code {code}" in problem), None)
    except subprocess.TimeoutExpired:
        problem = network = f"no answer within {INSTALL_SECS} s"
    if network and not os.environ.get("CI"):
        pytest.skip(f"the npm registry can't be reached: {network}")
    assert not problem, f"npm install failed: {problem}"
