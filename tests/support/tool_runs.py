"""Calls of tools in tests that are about their text."""

from collections.abc import Awaitable

from gateway_app.agent.tools import ToolOutput


async def text_of(running: Awaitable[str | ToolOutput]) -> str:
    output = await running
    if isinstance(output, ToolOutput):
        return output.text
    return output
