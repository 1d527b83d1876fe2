"""Real MCP servers for the tests, and the questions that tests ask of their tools."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext, ToolOutput
from gateway_app.config.mcp import McpServer
from gateway_app.tools.mcp.connection import Limits
from gateway_app.tools.mcp.toolset import McpToolset, ServerState
from tests.support.forked import Forked
from tests.support.ports import free_port
from tests.support.server import ROOT, Server

QUICK = Limits(connect_secs=20, list_secs=5, refresh_secs=30, first_retry_secs=0.05, last_retry_secs=0.2)
SERVER = str(ROOT / "tests/support/mcp_server.py")
RAW = str(ROOT / "tests/support/mcp_raw_server.py")


CONFIG = """
mcp_servers:
  demo:
    command: {python}
    args: ["{script}", "stdio"]
"""


class ServerWithMcp(Server):
    """Has the test server as its MCP server ``demo``."""

    def start(self) -> Server:
        config = CONFIG.format(python=sys.executable, script=SERVER)
        (self.home / "config.yaml").write_text(config)
        return super().start()


def local(label: str = "files", **fields: Any) -> McpServer:
    return McpServer(label, command=sys.executable, args=(SERVER, "stdio"), **fields)


def raw(*habits: str, label: str = "raw") -> McpServer:
    return McpServer(label, command=sys.executable, args=(RAW, *habits))


class HttpServer:
    """The test server on a socket, to be killed and started again on the same port."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self.log = log
        self.process: Forked | None = None

    def start(self) -> McpServer:
        command = [SERVER, "http", str(self.port)]
        self.process = Forked(command, dict(os.environ), Path(os.devnull), self.log, self.log)
        return McpServer("files", url=f"http://127.0.0.1:{self.port}/mcp")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class StartedToolset:
    """A started toolset and the questions the tests ask it."""

    def __init__(self, toolset: McpToolset) -> None:
        self.toolset = toolset
        self.reported: list[str] = []
        self.images: tuple[str, ...] = ()  # of the last call

    def tool(self, name: str) -> Tool:
        return {tool.name: tool for tool in self.toolset.tools()}[name]

    async def call(self, name: str, **arguments: Any) -> str:
        output = await self.tool(name).run(arguments, ToolContext(Path(), self.reported.append))
        assert isinstance(output, ToolOutput)
        self.images = output.images
        return output.text

    async def pid(self) -> int:
        number: int = json.loads(await self.call("files.whoami"))["pid"]
        return number

    def names(self) -> set[str]:
        return {tool.name for tool in self.toolset.tools()}

    def state(self, label: str) -> ServerState:
        return next(state for state in self.toolset.states() if state["label"] == label)

    async def ready(self, label: str = "files") -> None:
        await eventually(lambda: self.state(label)["state"] == "ready", what=f"{self.state(label)}")


async def eventually(condition: Callable[[], Any], timeout_secs: float = 30, what: str = "the condition") -> None:
    deadline = time.monotonic() + timeout_secs
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {timeout_secs} s"
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children() -> set[int]:
    """The test servers that this process started and that still run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid() and (SERVER in command or RAW in command):
            found.add(int(stat.parent.name))
    return found
