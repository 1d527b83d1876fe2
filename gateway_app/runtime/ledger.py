"""Runs tools through the ledger: the intent is stored before a call, its result before anything else."""

import logging

import orjson

from gateway_app.agent.types import Tool, ToolCall
from responses_app.eventlog import event_store
from responses_app.events import clean_text
from responses_app.models import Response, ToolEvent
from responses_app.models.tool_events import ToolStatus

logger = logging.getLogger(__name__)


class Ledger:
    def __init__(self, row: Response, tools: tuple[Tool, ...]) -> None:
        self._row = row
        self._tools = {tool.name: tool for tool in tools}

    async def run(self, call: ToolCall) -> str:
        """The output of a call; a failure is an output too, which the model can read."""
        row, is_stored = self._row, self._row.is_stored
        arguments = call.arguments if is_stored else ""
        await event_store.insist(
            lambda: ToolEvent.objects.begin(row.pk, row.attempt, call.call_id, call.name, arguments)
        )
        status, output = await self._execute(call)
        kept = output if is_stored else ""
        await event_store.insist(lambda: ToolEvent.objects.end(row.pk, call.call_id, status, kept))
        return output

    async def _execute(self, call: ToolCall) -> tuple[ToolStatus, str]:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolStatus.FAILED, f"Error: there is no tool named {call.name!r}."
        try:
            arguments = orjson.loads(call.arguments or "{}")
            if not isinstance(arguments, dict):
                raise ValueError("the arguments must be a JSON object")
            return ToolStatus.COMPLETED, clean_text(str(await tool.run(arguments)))
        except Exception as error:  # whatever a tool does, the model is told and the turn goes on
            logger.info("Tool %s failed: %s", call.name, error)
            return ToolStatus.FAILED, clean_text(f"Error: {error}")
