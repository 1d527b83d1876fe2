"""Run commands in a shell that remembers where it is."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.config.terminal_limits import Limits
from gateway_app.tools.support.cgroups import new_group
from gateway_app.tools.support.limits import DEFAULT_LIMITS
from gateway_app.tools.support.output import Output
from gateway_app.tools.support.processes import Program, run_program
from gateway_app.tools.support.sandbox import Sandbox, bubblewrap
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.shell_state import ShellState, read_state, state_file
from gateway_app.tools.support.workspace import prepared

DEFAULT_TIMEOUT_SECS = 60
MAX_TIMEOUT_SECS = 600
MAX_COMMAND_BYTES = 100_000  # Linux takes 131,071 in one argument
MODES = ("sandboxed", "unsandboxed", "off")
NO_SANDBOX = "bubblewrap is missing or does not work here"
NO_SANDBOX_REMEDY = (
    "Install bubblewrap 0.8.0 or newer (apt-get install bubblewrap), and allow user namespaces; "
    "or set HERMES_TERMINAL=off."
)

PARAMETERS = parameters_of(
    {
        "command": {
            "type": "string",
            "minLength": 1,
            "description": "Given to bash; may have several lines",
        }
    },
    {
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT_SECS,
            "default": DEFAULT_TIMEOUT_SECS,
            "description": "Seconds after which the command is stopped",
        }
    },
)
_DESCRIPTION = (
    "Run a bash command. It starts in the workspace; working directory, exported variables and "
    "functions last from call to call. There is no standard input and no terminal, so nothing can "
    "ask back. Output and errors come together, then the exit code; of a long output the middle is "
    "left out. "
    f"Stopped after timeout seconds (default {DEFAULT_TIMEOUT_SECS}, at most {MAX_TIMEOUT_SECS}). "
    "Background processes end with the call. "
    "Use it to run programs, builds, tests and version control; to read, change, list or search "
    "files, the tools for files are better."
)
_SANDBOX_DESCRIPTION = (
    " Only the workspace can be written to and lasts; /tmp is new and empty in every call."
)
_NO_NETWORK_DESCRIPTION = " There is no network."


def make_terminal(mode: str, limits: Limits = DEFAULT_LIMITS) -> Tool | None:
    """The limits are those of the sandbox."""
    if mode not in MODES:
        raise ValueError(f"the mode of the terminal is one of {', '.join(MODES)}, not {mode!r}")
    if mode == "off" or lacks_sandbox(mode):
        return None
    is_sandboxed = mode == "sandboxed"
    return Tool(
        name="terminal",
        description=_describe(is_sandboxed, limits),
        parameters=PARAMETERS,
        run=partial(_run, is_sandboxed, limits),
        # Outside the sandbox another call can rewrite the script that a command runs.
        can_keep_consent=is_sandboxed,
        # The tool stops a command itself, earlier, and returns its output up to then.
        time_limit_secs=MAX_TIMEOUT_SECS + 30,
        rest_hint="call terminal again with a command whose output goes to a file (COMMAND > out.txt "
        "2>&1), then read_file with path out.txt and offset and limit.",
    )


def lacks_sandbox(mode: str) -> bool:
    """The first call in a process runs bubblewrap once, which takes some milliseconds."""
    return mode == "sandboxed" and bubblewrap() is None


def _describe(is_sandboxed: bool, limits: Limits) -> str:
    if not is_sandboxed:
        return _DESCRIPTION
    if limits.has_network:
        return _DESCRIPTION + _SANDBOX_DESCRIPTION
    return _DESCRIPTION + _SANDBOX_DESCRIPTION + _NO_NETWORK_DESCRIPTION


async def _run(
    is_sandboxed: bool, limits: Limits, arguments: dict[str, Any], context: ToolContext
) -> str:
    values = checked(arguments, PARAMETERS)
    command: str = values["command"]
    if "\0" in command:
        raise ValueError("the argument 'command' can't contain a NUL character")
    if len(command.encode(errors="surrogatepass")) > MAX_COMMAND_BYTES:
        raise ValueError(
            f"the argument 'command' may have at most {MAX_COMMAND_BYTES} bytes; "
            "write a script and run it"
        )
    workspace = await asyncio.to_thread(prepared, context.workspace)
    wrapper: str | None = None
    if is_sandboxed:
        wrapper = await asyncio.to_thread(bubblewrap)
        if wrapper is None:
            raise RuntimeError(f"{NO_SANDBOX}; the command was not run")
    file = state_file(workspace, is_sandboxed=wrapper is not None)
    with ShellState(file, await asyncio.to_thread(read_state, file)) as state:
        plain = Program(
            argv=state.argv(command),
            cwd=workspace,
            env=_environment(workspace),
            pass_fds=(state.given, state.kept),
        )
        if wrapper is None:
            return await _execute(plain, values["timeout"], state, context)
        group = await asyncio.to_thread(new_group, limits)
        with Sandbox(wrapper, workspace, limits, group) as sandbox:
            prefix = await asyncio.to_thread(sandbox.argv)
            program = replace(
                plain,
                argv=prefix + plain.argv,
                pass_fds=plain.pass_fds + sandbox.descriptors,
                is_wrapper=True,
                group=group,
            )
            return await _execute(program, values["timeout"], state, context)


async def _execute(
    program: Program, timeout_secs: int, state: ShellState, context: ToolContext
) -> str:
    output = Output(context.report)
    ending = await run_program(program, timeout_secs, output.take)
    is_saved = await asyncio.to_thread(state.save)
    remarks = [output.text().rstrip("\n")]
    if ending.is_out_of_time:
        remarks.append(f"[stopped: it ran longer than {timeout_secs} seconds]")
    if not is_saved:
        remarks.append(
            "[the shell ended before it could keep its directory and variables: they are as before]"
        )
    remarks.append(f"[exit code {ending.exit_code}]")
    return "\n".join(filter(None, remarks))


def _environment(workspace: Path) -> dict[str, str]:
    """Built from nothing: the server's own holds its secrets."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(workspace),
        "PWD": str(workspace),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/bash",
    }
