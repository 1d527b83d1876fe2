"""The sandbox of the terminal: what a command sees and may write, and what happens where there is none."""

import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools import builtin_tools
from gateway_app.tools.support.limits import DEFAULT_LIMITS
from gateway_app.tools.support.sandbox import bubblewrap, wrapped
from gateway_app.tools.terminal import make_terminal
from tests.support.tool_runs import text_of

Shell = Callable[[str], Awaitable[str]]


def terminal(mode: str) -> Tool:
    return builtin_tools(mode)["terminal"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "home" / "workspace"


@pytest.fixture
def sandbox(workspace: Path) -> Shell:
    if bubblewrap() is None:
        pytest.skip("bubblewrap does not work: apt-get install bubblewrap")
    return lambda command: text_of(
        terminal("sandboxed").run({"command": command}, ToolContext(workspace, report=print))
    )


async def test_the_sandbox_shows_the_system_and_the_workspace_alone(
    sandbox: Shell, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    workspace.parent.mkdir()
    (workspace.parent / "api_key").write_text("sk-secret")
    home = workspace.parent
    for command in ("cat /proc/*/environ", f"cat {home}/api_key", f"cat {workspace}/../api_key", "env", "ps aux"):
        assert "sk-secret" not in await sandbox(command)
    assert await sandbox(f"ls -A {home}") == "workspace\n[exit code 0]"
    assert str(os.getpid()) not in (await sandbox("cd /proc; echo [0-9]*")).split()
    assert (await sandbox("cat /etc/shadow")) in (
        "cat: /etc/shadow: Permission denied\n[exit code 1]",
        "cat: /etc/shadow: No such file or directory\n[exit code 1]",
    )
    seen = (await sandbox("ls -A /")).split()
    assert {"root", "home", "var", "srv", "run", "sys", "mnt", "opt"}.isdisjoint(seen)


async def test_the_sandbox_writes_to_the_workspace_and_tmp_alone(sandbox: Shell, workspace: Path) -> None:
    for path in ("/usr", "/etc", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger", "/proc/self/oom_score_adj"):
        assert await sandbox(f"[ -w {path} ]") == "[exit code 1]"
    assert "CapEff:\t0000000000000000" in await sandbox("grep CapEff /proc/self/status")
    assert await sandbox("echo x > /tmp/x && echo y > ~/y && cat /tmp/x ~/y") == "x\ny\n[exit code 0]"
    assert "No such file" in await sandbox("cat /tmp/x")
    assert (workspace / "y").read_text() == "y\n"


def test_a_workspace_among_the_systems_folders_is_refused() -> None:
    with pytest.raises(ValueError, match="lies in /usr"):
        wrapped("bwrap", Path("/usr/src/app/var/workspace"), DEFAULT_LIMITS)


@pytest.fixture
def no_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Like a container in which no namespaces can be made."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    bubblewrap.cache_clear()
    yield programs
    bubblewrap.cache_clear()


async def test_without_a_working_bubblewrap_there_is_no_terminal(
    sandbox: Shell, no_bubblewrap: Path, workspace: Path
) -> None:
    assert "terminal" not in builtin_tools("sandboxed")
    assert "terminal" in builtin_tools("unsandboxed")
    with pytest.raises(KeyError, match="terminal"):
        await sandbox("echo not run")


async def test_a_sandbox_that_breaks_later_runs_no_command(
    sandbox: Shell, workspace: Path, request: pytest.FixtureRequest
) -> None:
    tool = terminal("sandboxed")
    request.getfixturevalue("no_bubblewrap")
    with pytest.raises(RuntimeError, match="the command was not run"):
        await tool.run({"command": "touch ran"}, ToolContext(workspace, report=print))
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("mode", ["sandboxed", "unsandboxed"])
def test_with_bubblewrap_or_without_a_sandbox_no_consent_is_asked_for(mode: str, sandbox: Shell) -> None:
    tool = terminal(mode)
    assert tool.asks_approval is None
    assert tool.can_keep_consent == (mode == "sandboxed")
    assert not tool.is_replay_safe
    assert tool.time_limit_secs > 600


def test_off_means_no_terminal_and_other_words_are_refused() -> None:
    assert "terminal" not in builtin_tools("off")
    with pytest.raises(ValueError, match="sandboxed, unsandboxed, off"):
        make_terminal("on")
