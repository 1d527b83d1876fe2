"""The limits of the sandbox: where they come from, which of them hold, and what they leave behind."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.tools import ToolContext
from gateway_app.config.terminal_limits import Limits
from gateway_app.tools import builtin_tools
from gateway_app.tools.support import cgroups, seccomp
from gateway_app.tools.support.private_files import PrivateFiles
from gateway_app.tools.support.sandbox import bubblewrap
from tests.support.server import ROOT, Server, script
from tests.support.tool_runs import text_of

pytestmark = pytest.mark.skipif(bubblewrap() is None, reason="bubblewrap does not work: apt-get install bubblewrap")
needs_group = pytest.mark.skipif(cgroups.usable_parents() is None, reason="no control group can be made here")
ORDINARY_USER = 65534
AS_ORDINARY_USER = """
import asyncio, json, sys
from pathlib import Path
from gateway_app.agent.tools import ToolContext
from gateway_app.tools import builtin_tools
from gateway_app.tools.support.limits import Limits
from gateway_app.tools.support.private_files import PrivateFiles

async def main(workspace, *commands):
    terminal = builtin_tools("sandboxed", Limits(processes=64))["terminal"]
    context = ToolContext(Path(workspace), report=len)
    print(json.dumps([await terminal.run({"command": command}, context) for command in commands]))

asyncio.run(main(*sys.argv[1:]))
"""
FORKS = (
    "pipe(R, W); my $made = 0; for (1 .. 500) { my $pid = fork(); last unless defined $pid; "
    'if (!$pid) { close W; sysread(R, my $b, 1); exit } $made++ } print "$made\\n"'
)


async def run(workspace: Path, command: str, limits: Limits) -> str:
    terminal = builtin_tools("sandboxed", limits)["terminal"]
    return await text_of(terminal.run({"command": command}, ToolContext(workspace, report=print)))


@pytest.mark.any_database
@pytest.mark.parametrize(("setting", "expected"), [("off", "closed"), ("on", "open")])
def test_the_network_is_there_when_the_operator_turns_it_on(
    make_server: Callable[..., Server], setting: str, expected: str
) -> None:
    server = make_server(HERMES_TERMINAL_NETWORK=setting)
    command = f"if echo > /dev/tcp/127.0.0.1/{server.port}; then echo open; else echo closed; fi 2>/dev/null"
    with server.http() as client:
        asked = {"input": script({"call": "terminal", "arguments": {"command": command}})}
        items: list[dict[str, Any]] = client.post("/v1/responses", json=asked).json()["output"]
    [output] = [item["output"] for item in items if item["type"] == "function_call_output"]
    assert output == f"{expected}\n[exit code 0]"


@pytest.mark.any_database
def test_the_doctor_lists_the_limits_that_hold(server: Server) -> None:
    found = server.managed("doctor").stdout.decode()
    assert "commands run in bubblewrap, without network" in found
    assert "each process has up to 2048 MB of memory, 900 s of processor time, files of 1024 MB" in found
    parents = cgroups.usable_parents()
    if parents is not None:
        assert f"2048 MB of memory and 512 processes (control groups, version {parents.version})" in found
    else:
        assert "memory in total" in found
    if seccomp.is_available():
        assert "a filter refuses dangerous system calls" in found


def test_the_model_knows_whether_there_is_a_network() -> None:
    without, with_network = (
        builtin_tools("sandboxed", Limits(has_network=has_network))["terminal"] for has_network in (False, True)
    )
    assert without.description == with_network.description + " There is no network."


@needs_group
async def test_the_group_of_a_command_is_removed_after_it(tmp_path: Path) -> None:
    parents = cgroups.usable_parents()
    assert parents is not None
    await run(tmp_path, "sleep 100 & setsid sleep 100 & true", Limits())
    for folder in parents.folders:
        assert list(folder.glob(f"{cgroups.PREFIX}-{os.getpid()}-*")) == []


@needs_group
def test_the_groups_of_a_killed_server_are_removed_by_the_next_one() -> None:
    parents = cgroups.usable_parents()
    assert parents is not None
    left = [folder / f"{cgroups.PREFIX}-99999999-left" for folder in parents.folders]
    for folder in left:
        folder.mkdir()
    cgroups.usable_parents.cache_clear()
    assert cgroups.usable_parents() == parents
    assert not any(folder.exists() for folder in left)


def test_a_new_private_file_is_covered_at_once(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir(mode=0o700)
    private = PrivateFiles(tmp_path)
    closed = str(tmp_path / "closed")
    covered = ("--tmpfs", closed, "--remount-ro", closed)
    assert private.options() == covered
    (tmp_path / "open" / "readable").touch(mode=0o644)
    (tmp_path / "open" / "secret").touch(mode=0o600)
    assert sorted(private.options()) == sorted((*covered, "--ro-bind", "/dev/null", str(tmp_path / "open" / "secret")))


def ordinary_python() -> str:
    """A Python that the ordinary user may run, with the project's modules."""
    check = "import gateway_app.tools"
    for program in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [program, "-c", check],
                user=ORDINARY_USER,
                cwd=ROOT,
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_sandbox_of_an_ordinary_user_has_limits_without_a_control_group(
    request: pytest.FixtureRequest,
) -> None:
    program = ordinary_python()
    if not program:
        pytest.skip("no Python that an ordinary user may run")
    workspace = tempfile.mkdtemp()
    request.addfinalizer(partial(shutil.rmtree, workspace))
    os.chown(workspace, ORDINARY_USER, ORDINARY_USER)
    commands = ["id -u", "cat /etc/shadow", f"perl -e '{FORKS}'", "unshare -U true", "touch /x"]
    done = subprocess.run(
        [program, "-c", AS_ORDINARY_USER, workspace, *commands],
        user=ORDINARY_USER,
        group=ORDINARY_USER,
        extra_groups=[],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    user, shadow, forks, namespace, root = json.loads(done.stdout)
    assert user == f"{ORDINARY_USER}\n[exit code 0]"
    assert "[exit code 1]" in shadow
    assert 1 <= int(forks.split()[0]) < 64
    assert "[exit code 1]" in namespace
    assert "[exit code 1]" in root


@pytest.mark.skipif(platform.machine() not in seccomp.MACHINES, reason="there is no filter for this machine")
@pytest.mark.parametrize("program", ["node -p 6*7", "java -version && echo 42", "python3 -c 'print(6*7)'"])
async def test_a_runtime_that_reserves_address_space_starts(tmp_path: Path, program: str) -> None:
    if "command not found" in (output := await run(tmp_path, program, Limits(memory_mb=512))):
        pytest.skip(f"{program.split()[0]} is not on this machine")
    assert "42\n[exit code 0]" in output
