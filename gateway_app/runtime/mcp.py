"""The MCP servers of this process: reached when it starts, left when it ends."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from django.conf import settings

from gateway_app.agent.tools import Tool

if TYPE_CHECKING:
    from gateway_app.tools.mcp.toolset import McpToolset, ServerState

POLL_SECS = 0.05
mcp_toolset: "McpToolset | None" = None


async def start_toolset() -> None:
    """Idempotent, and nothing where no MCP server is configured."""
    global mcp_toolset
    if mcp_toolset is None and settings.HERMES_MCP_SERVERS:
        mcp_toolset = await asyncio.to_thread(_make)
        mcp_toolset.start()


async def stop_toolset() -> None:
    global mcp_toolset
    if mcp_toolset is not None:
        stopping, mcp_toolset = mcp_toolset, None
        await stopping.stop()


def mcp_tools() -> tuple[Tool, ...]:
    """What the MCP servers offer right now; asking never waits."""
    return () if mcp_toolset is None else mcp_toolset.tools()


async def connected(patience_secs: float) -> None:
    """Until no server is still being reached, or patience ends."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_secs):
            while any(state["state"] == "connecting" for state in mcp_states()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECS)


def mcp_states() -> "list[ServerState]":
    return [] if mcp_toolset is None else mcp_toolset.states()


def _make() -> "McpToolset":
    from gateway_app.tools.mcp.toolset import (
        McpToolset,
    )  # takes a second: off the loop, and only where it is used

    return McpToolset(settings.HERMES_MCP_SERVERS, version=settings.HERMES_VERSION)
