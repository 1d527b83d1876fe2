"""The terminal: a shell that remembers, streams, stops on request, and sees nothing of the server."""

import asyncio
import fcntl
import os
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools import builtin_tools
from gateway_app.tools.support.output import MAX_REPORTED_CHARS, MAX_RESULT_CHARS
from gateway_app.tools.support.sandbox import bubblewrap
from tests.support.tool_runs import text_of

Shell = Callable[..., Coroutine[Any, Any, str]]
needs_bubblewrap = pytest.mark.skipif(
    bubblewrap() is None, reason="bubblewrap does not work: apt-get install bubblewrap"
)


def terminal(mode: str) -> Tool:
    return builtin_tools(mode)["terminal"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "home" / "workspace"


class Viewer:
    """A client that watches the output as it appears."""

    def __init__(self) -> None:
        self.text = ""
        self._changed = asyncio.Event()

    def report(self, piece: str) -> None:
        self.text += piece
        self._changed.set()

    async def sees(self, text: str) -> None:
        async with asyncio.timeout(10):
            while text not in self.text:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def viewer() -> Viewer:
    return Viewer()


@pytest.fixture(params=[pytest.param("sandboxed", marks=needs_bubblewrap), "unsandboxed"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shell(mode: str, workspace: Path, viewer: Viewer) -> Shell:
    context = ToolContext(workspace, report=viewer.report)

    async def shell(command: str, **arguments: Any) -> str:
        async with asyncio.timeout(30):
            return await text_of(terminal(mode).run({"command": command, **arguments}, context))

    return shell


async def freed(lock: Path) -> None:
    """Returns once no process holds the lock any more, and so none of those that inherited it is alive."""
    with lock.open("rb") as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)


async def test_output_errors_and_exit_code_come_together(shell: Shell, viewer: Viewer) -> None:
    assert await shell("echo out; echo err >&2; exit 3") == "out\nerr\n[exit code 3]"
    assert viewer.text == "out\nerr\n"
    assert await shell("true") == "[exit code 0]"
    assert await shell("cat; read x || echo none") == "none\n[exit code 0]"
    assert (await shell("cd /nonexistent")).startswith("bash: line 1: cd: /nonexistent: No such file")


async def test_directory_variables_and_functions_last(shell: Shell, workspace: Path) -> None:
    value = "two\nlines 'and' \"quotes\" $HOME `x` \\ ü"
    await shell("mkdir -p a/b; cd a/b; unset LANG; hi() { cat <<EOT\nhi $1\nEOT\n}; exit 5")
    (workspace / "value").write_text(value)
    await shell('export X="$(cat ~/value)"; local_only=1; set -e; false; echo not reached')
    assert await shell('pwd; printf "%s" "$X"; echo; hi you; echo "[$LANG$local_only$1]"') == (
        f"{workspace}/a/b\n{value}\nhi you\n[]\n[exit code 0]"
    )
    assert await shell("cd ..; cd -") == f"{workspace}/a/b\n[exit code 0]"


async def test_the_state_is_kept_where_no_tool_looks(shell: Shell, workspace: Path) -> None:
    await shell("export TOKEN=mine")
    [file] = (workspace.parent / ".workspace-shell").iterdir()
    assert "TOKEN" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert os.listdir(workspace) == []


async def test_a_folder_that_is_gone_is_reported_once(shell: Shell, workspace: Path) -> None:
    await shell("mkdir gone; cd gone; rmdir ../gone")
    assert await shell("pwd") == f"[the folder {workspace}/gone is gone]\n{workspace}\n[exit code 0]"
    assert await shell('echo "$PWD"') == f"{workspace}\n[exit code 0]"


@pytest.mark.parametrize("command", ["kill -9 $$", "exec true", "trap : EXIT; exit"])
async def test_a_shell_that_cannot_report_its_state_leaves_the_old_one(shell: Shell, command: str) -> None:
    await shell("export X=old")
    assert "[the shell ended before it could keep" in await shell(f"export X=new; {command}")
    assert await shell("echo $X") == "old\n[exit code 0]"


async def test_odd_commands_do_not_break_the_shell(shell: Shell) -> None:
    assert "[exit code 2]" in await shell('echo "unbalanced')
    assert await shell("cat <<'E'\n$x \"quoted\nE") == '$x "quoted\n[exit code 0]'
    assert await shell("cat <<E\nno end") != ""
    assert await shell("trap 'echo bye' EXIT; export Y=1") == "bye\n[exit code 0]"
    assert await shell("set -x; export X=1") == "++ export X=1\n++ X=1\n[exit code 0]"
    await shell("eval() { echo no; }; builtin() { echo no; }; cd() { echo no; }; export PATH=/nowhere")
    assert await shell("unset -f cd eval; echo $X $Y $PATH") == "1 1 /nowhere\n[exit code 0]"
    assert await shell("kill $$; sleep 20") == "[exit code 143]"
    assert await shell("# nothing") == "[exit code 0]"


async def test_wrong_arguments_are_named(shell: Shell) -> None:
    for command, arguments, message in (
        ("echo \0", {}, "'command' can't contain a NUL"),
        ("", {}, "'command' must not be empty"),
        ("x" * 100_001, {}, "'command' may have at most 100000 bytes"),
        ("true", {"timeout": 601}, "'timeout' must be at least 1 and at most 600"),
    ):
        with pytest.raises(ValueError, match=message):
            await shell(command, **arguments)
    assert (await shell("true #" + "x" * 99_000)) == "[exit code 0]"


async def test_parallel_calls_leave_a_whole_state(shell: Shell, workspace: Path) -> None:
    await shell("export BEFORE=1")
    os.mkfifo(workspace / "gate")
    slow = asyncio.create_task(shell("cat gate"))  # changes nothing, and ends last
    await asyncio.gather(*(shell(f"export X={'x' * 5000} N={n}; cd /usr") for n in range(10)))
    await shell("echo > ~/gate")
    assert await slow == "[exit code 0]"
    assert await shell("pwd; echo $BEFORE ${#X} ${N:+set}") == "/usr\n1 5000 set\n[exit code 0]"


async def test_output_is_streamed_while_the_command_runs(shell: Shell, workspace: Path, viewer: Viewer) -> None:
    await shell("mkfifo gate")
    running = asyncio.create_task(shell(r"printf 'first \xc3'; cat gate; printf '\xbc \xff'"))
    await viewer.sees("first")
    assert not running.done()
    await shell("echo -n > gate")
    assert await running == "first ü \ufffd\n[exit code 0]"
    assert viewer.text == "first ü \ufffd"


async def test_50_megabytes_are_cut_in_the_middle(shell: Shell, viewer: Viewer) -> None:
    output = await shell("echo BEGIN; head -c 50000000 /dev/zero | tr '\\0' x; echo END")
    assert output.startswith("BEGIN\nxxx")
    assert output.endswith("xxxEND\n[exit code 0]")
    assert f"[... cut: {50_000_010 - MAX_RESULT_CHARS} characters left out ...]" in output
    assert len(output) < MAX_RESULT_CHARS + 200
    assert len(viewer.text) < MAX_REPORTED_CHARS + 200


async def test_the_time_limit_stops_the_whole_group(shell: Shell, workspace: Path) -> None:
    await shell("touch lock")
    command = "export X=1; trap 'echo cleaning; exit 9' TERM; echo a; flock lock sleep 100 & wait"
    output = await shell(command, timeout=1)
    assert output == "a\ncleaning\n[stopped: it ran longer than 1 seconds]\n[exit code 9]"
    await freed(workspace / "lock")
    assert await shell("echo $X") == "1\n[exit code 0]"


async def test_a_command_that_ignores_the_request_to_end_is_ended(shell: Shell, workspace: Path) -> None:
    output = await shell("touch lock; trap '' TERM; echo a; flock lock sleep 100", timeout=1)
    assert output.startswith("a\n[stopped: it ran longer than 1 seconds]\n")
    assert output.endswith("[exit code 137]")
    await freed(workspace / "lock")


@pytest.mark.parametrize("trap", ["trap 'touch cleaned; exit' TERM", "trap '' TERM; touch cleaned"])
async def test_cancelling_leaves_no_process(shell: Shell, workspace: Path, viewer: Viewer, trap: str) -> None:
    running = asyncio.create_task(shell(f"{trap}; touch lock; flock lock sh -c 'echo started; sleep 100' & wait"))
    await viewer.sees("started")
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()  # the impatient do it twice
    with pytest.raises(asyncio.CancelledError):
        await running
    await freed(workspace / "lock")
    assert (workspace / "cleaned").exists()
    assert await shell("echo fine") == "fine\n[exit code 0]"


async def test_a_cancel_at_any_moment_of_the_start_leaves_no_process(shell: Shell, workspace: Path) -> None:
    await shell("touch lock")
    for steps in range(0, 60, 3):
        running = asyncio.create_task(shell("exec 9<lock; flock -s 9; sleep 100"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await freed(workspace / "lock")


async def test_background_children_neither_hold_up_the_call_nor_outlive_it(shell: Shell, workspace: Path) -> None:
    async with asyncio.timeout(10):
        assert await shell("touch lock; flock lock sleep 100 & echo done") == "done\n[exit code 0]"
        await freed(workspace / "lock")
        assert await shell("setsid sleep 15 & echo done") == "done\n[exit code 0]"


@needs_bubblewrap
@pytest.mark.parametrize("mode", ["sandboxed"])
async def test_in_the_sandbox_a_child_in_a_session_of_its_own_dies_too(shell: Shell, workspace: Path) -> None:
    await shell("touch lock; setsid flock lock sleep 100 & echo done")
    await freed(workspace / "lock")


async def test_the_servers_secrets_are_not_in_the_environment(
    shell: Shell, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    names = {line.partition("=")[0] for line in (await shell("env")).splitlines()[:-1]}
    assert names == {"PATH", "HOME", "PWD", "LANG", "TERM", "SHELL", "SHLVL", "_"}
