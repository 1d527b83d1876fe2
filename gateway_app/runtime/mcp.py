"""The connections of this process to MCP servers: opened when it starts, closed when it ends."""

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from django.conf import settings

from gateway_app.agent.tools import Tool

if TYPE_CHECKING:
    from gateway_app.tools.mcp.toolset import McpToolset, ServerState

POLL_SECS = 0.05
mcp_toolset: "McpToolset | None" = None
_started_at = 0.0


async def start_toolset() -> None:
    """Idempotent, and nothing where no MCP server is configured."""
    global mcp_toolset, _started_at
    if mcp_toolset is None and settings.HERMES_MCP_SERVERS:
        _started_at = time.monotonic()
        mcp_toolset = await asyncio.to_thread(_make)
        mcp_toolset.start()


def secs_since_start() -> float:
    """Since this process began to open the connections."""
    return time.monotonic() - _started_at


async def stop_toolset() -> None:
    global mcp_toolset
    if mcp_toolset is not None:
        stopping = mcp_toolset
        mcp_toolset = None
        await stopping.stop()


def mcp_tools() -> tuple[Tool, ...]:
    """What the MCP servers offer right now, without waiting."""
    if mcp_toolset is None:
        return ()
    return mcp_toolset.tools()


async def wait_until_connected(timeout_secs: float) -> None:
    """Wait until no connection is still being opened, at most for this time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_secs):
            while any(state["state"] == "connecting" for state in mcp_states()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECS)


def mcp_states() -> "list[ServerState]":
    if mcp_toolset is None:
        return []
    return mcp_toolset.states()


def _make() -> "McpToolset":
    # This import takes a second: it runs in a thread, and only where a server is configured.
    from gateway_app.tools.mcp.toolset import McpToolset

    return McpToolset(settings.HERMES_MCP_SERVERS, version=settings.HERMES_VERSION)
