"""The tools the server can run; a new one is a file here and a line below."""

from gateway_app.agent.tools import Tool
from gateway_app.config.terminal_limits import Limits
from gateway_app.tools import (
    calculate,
    list_files,
    memory,
    patch,
    read_file,
    search_files,
    terminal,
    todo,
    write_file,
)
from gateway_app.tools.support.limits import DEFAULT_LIMITS


def builtin_tools(terminal_mode: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, Tool]:
    """All of them; the mode is ``sandboxed``, ``unsandboxed`` or ``off``."""
    tools = (
        calculate.TOOL,
        read_file.TOOL,
        write_file.TOOL,
        patch.TOOL,
        list_files.TOOL,
        search_files.TOOL,
        todo.TOOL,
        memory.TOOL,
        terminal.make_terminal(terminal_mode, limits),
    )
    return {tool.name: tool for tool in tools if tool is not None}
