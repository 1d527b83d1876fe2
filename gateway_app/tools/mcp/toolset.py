"""The tools of all configured MCP servers, as they are at the moment."""

import asyncio
from collections.abc import Sequence
from typing import TypedDict

from gateway_app.agent.tools import Tool
from gateway_app.config.mcp import McpServer
from gateway_app.tools.mcp.connection import Connection, Limits


class ServerState(TypedDict):
    label: str
    state: str  # connecting, ready or down
    tools: int
    error: str  # why it is down, or was before this attempt


class McpToolset:
    """One connection per server; a server that is away costs its own tools and nothing else."""

    def __init__(
        self, servers: Sequence[McpServer], limits: Limits | None = None, version: str = "0"
    ) -> None:
        self._connections = [Connection(server, limits or Limits(), version) for server in servers]
        self._is_started = False

    def start(self) -> None:
        """On the running loop; idempotent. Servers are reached in the background."""
        if not self._is_started:
            self._is_started = True
            for connection in self._connections:
                connection.start()

    async def stop(self) -> None:
        await asyncio.gather(*(connection.stop() for connection in self._connections))

    def tools(self) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        for connection in self._connections:
            tools += connection.tools
        return tuple(tools)

    def states(self) -> list[ServerState]:
        states = []
        for connection in self._connections:
            state = ServerState(
                label=connection.server.label,
                state=connection.state,
                tools=len(connection.tools),
                error=connection.error,
            )
            states.append(state)
        return states
