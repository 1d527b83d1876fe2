"""A real MCP server for the tests: ``mcp_server.py stdio`` or ``mcp_server.py http PORT``."""

import asyncio
import os
import sys
from pathlib import Path

from mcp import types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def whoami() -> types.CallToolResult:
    """Which process this is, in structured content alone."""
    return types.CallToolResult(content=[], structured_content={"pid": os.getpid()})


@server.tool(annotations=types.ToolAnnotations(idempotent_hint=True))
def environment() -> str:
    """The names of all variables, and the value of the one it was given."""
    return " ".join([*sorted(os.environ), os.environ.get("GIVEN", "")])


@server.tool()
async def count(to: int, context: Context) -> str:
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"step {number}" if number > 1 else None)
    return "counted"


@server.tool()
def fail() -> str:
    raise ToolError("the disk is full")


def leave(folder: str, name: str) -> None:
    Path(folder, name).touch()


@server.tool()
async def wait(folder: str) -> str:
    """Never ends by itself; leaves files that show its progress."""
    leave(folder, "started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        leave(folder, "cancelled")
        raise
    return "never"


@server.tool()
def picture() -> types.CallToolResult:
    return types.CallToolResult(
        content=[
            types.TextContent(text="a dot"),
            types.ImageContent(data="aGVsbG8=", mime_type="image/png"),
            types.EmbeddedResource(
                resource=types.TextResourceContents(uri="file:///note.txt", mime_type="text/plain", text="kept")
            ),
            types.ResourceLink(name="big", uri="file:///big.bin", size=7),
        ]
    )


@server.tool()
async def grow(context: Context) -> str:
    """Offers one tool more from now on."""
    server.add_tool(add, name="grown")
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if sys.argv[1] == "http":
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
