"""Calls of tools that work on files: they run where the files of the owner are, or fail."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from gateway_app.agent.core_prompt import WORKSPACE_TOOLS
from gateway_app.agent.tools import ToolCall, ToolResult
from gateway_app.runtime.agents import Agent
from gateway_app.runtime.pins import pins
from gateway_app.runtime.stop_causes import ContinuedElsewhere
from gateway_app.runtime.workspaces import (
    HERE,
    FileLocation,
    FilesElsewhere,
    find_files,
)
from responses_app.database import database
from responses_app.models import Response

RunCall = Callable[[ToolCall], Awaitable[ToolResult | None]]

_owners_here: set[int] = set()  # a folder of this process has their files


class OwnerWorkspace:
    """The folder of one turn's owner and profile."""

    def __init__(self, row: Response, agent: Agent) -> None:
        self._row = row
        self._agent = agent

    async def run(self, run: RunCall, call: ToolCall) -> ToolResult | None:
        """Before the call has a row: a turn whose files another process has goes on there."""
        location = await self._locate(call.name)
        if location.has_process and await self._give_back():
            raise ContinuedElsewhere(self._row.pk)
        return await run(call)

    async def path_for(self, tool_name: str) -> Path:
        location = await self._locate(tool_name)
        if not location.is_here:
            raise FilesElsewhere(location.reason)
        return self._agent.workspace(self._row.owner_id)

    async def _locate(self, tool_name: str) -> FileLocation:
        owner_id = self._row.owner_id
        if tool_name not in WORKSPACE_TOOLS or owner_id in _owners_here:
            return HERE
        location = await database.write_with_retry(partial(find_files, owner_id))
        if location.is_here:
            _owners_here.add(owner_id)
        return location

    async def _give_back(self) -> bool:
        if not self._row.is_stored:
            return False
        pins.note_elsewhere(self._row.owner_id)
        step = partial(Response.objects.give_back, self._row.pk, self._row.attempt)
        return await database.write_with_retry(step)
