"""The server's calls of one round: those that change something run in the order of the calls."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from gateway_app.agent.context import with_images
from gateway_app.agent.events import ToolFinished
from gateway_app.agent.tools import (
    ApprovalEvent,
    ApprovalGiven,
    ApprovalRequested,
    AskConsent,
    Consent,
    RunTool,
    Tool,
    ToolCall,
    ToolResult,
)
from responses_app.protocol.items import Item

NOT_YET = (
    "Not carried out: a call before this one waits for the approval of the client. "
    "Repeat the call when it is still needed after that."
)


AskedCall = tuple[ToolCall, Consent]


async def always_given(call: ToolCall) -> Consent:
    return Consent.GIVEN


def output_item(finished: ToolFinished) -> Item:
    output = with_images(finished.output, finished.images)
    return {"type": "function_call_output", "call_id": finished.call_id, "output": output}


class ToolRound:
    """Runs calls in steps: calls that only read run together, every other call runs alone.

    A call behind one that waits for an approval does not run before it.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        tools: Sequence[Tool],
        run_tool: RunTool,
        ask_consent: AskConsent = always_given,
    ) -> None:
        self._calls = calls
        self._tools = {tool.name: tool for tool in tools}
        self._run_tool = run_tool
        self._ask_consent = ask_consent
        self.waits_for: list[str] = []  # ids of the calls whose decision the turn waits for
        self.has_requests = False  # the client is asked in the output, and the turn ends

    async def results(self) -> AsyncGenerator[ToolFinished | ApprovalEvent]:
        # All calls ask before one runs: those who decide see every call that waits.
        asked: list[AskedCall] = []
        for call in self._calls:
            asked.append((call, await self._ask_consent(call)))
        for step in self._steps(asked):
            async with aclosing(self._run_step(step)) as events:
                async for event in events:
                    yield event
            if self.waits_for:
                return

    def _steps(self, asked: Sequence[AskedCall]) -> list[list[AskedCall]]:
        steps: list[list[AskedCall]] = []
        was_read_only = False
        for call, consent in asked:
            is_read_only = self._is_read_only(call)
            if is_read_only and was_read_only:
                steps[-1].append((call, consent))
            else:
                steps.append([(call, consent)])
            was_read_only = is_read_only
        return steps

    def _is_read_only(self, call: ToolCall) -> bool:
        """A call of a tool that is not there has no effect either."""
        tool = self._tools.get(call.name)
        return tool is None or tool.is_read_only

    async def _run_step(
        self, step: Sequence[AskedCall]
    ) -> AsyncGenerator[ToolFinished | ApprovalEvent]:
        given: list[ToolCall] = []
        is_blocked = self.has_requests
        for call, consent in step:
            if consent is Consent.REQUESTED:
                self.has_requests = True
                yield ApprovalRequested(call.call_id)
            elif is_blocked:
                yield ToolFinished(call.call_id, NOT_YET, is_error=True)
            elif consent is Consent.AWAITED:
                self.waits_for.append(call.call_id)
            else:
                given.append(call)
                yield ApprovalGiven(call.call_id)
        async with aclosing(self._run_together(given)) as finished:
            async for result in finished:
                yield result

    async def _run_together(self, calls: Sequence[ToolCall]) -> AsyncGenerator[ToolFinished]:
        """Each result as it comes."""
        running: dict[asyncio.Future[ToolResult | None], ToolCall] = {}
        for call in calls:
            running[asyncio.ensure_future(self._run_tool(call))] = call
        left = set(running)
        try:
            while left:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for task, call in running.items():  # in the order of the calls
                    if task not in done:
                        continue
                    result = task.result()
                    if result is None:
                        self.waits_for.append(call.call_id)
                    else:
                        yield ToolFinished(
                            call.call_id, result.output, result.is_error, result.images
                        )
        finally:
            for task in left:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
