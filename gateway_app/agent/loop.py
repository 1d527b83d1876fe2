"""The agent loop: ask the model, run the tools it calls, ask again, until it is done."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from gateway_app.agent.answer_buffer import AnswerBuffer, follow
from gateway_app.agent.compaction import compact, plan_compaction, summary_call
from gateway_app.agent.events import (
    INCOMPLETE_REASONS,
    AgentEvent,
    Compaction,
    Item,
    ModelFinished,
    RoundFinished,
    ToolFinished,
    TurnFinished,
    TurnParked,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.rounds import ask
from gateway_app.agent.tools import RunTool, ToolCall
from responses_app.protocol.items import all_call_ids

MAX_ITERATIONS = 90
TOO_MANY_CALLS = "Not carried out: this turn may call tools {limit} times (max_tool_calls)."


@dataclass(frozen=True)
class TurnProgress:
    """What is behind a turn that goes on; of one that begins, everything is empty."""

    items: tuple[Item, ...] = ()  # what the model said and was answered
    pending: tuple[ToolCall, ...] = ()  # whole calls without a result
    usage: Usage = field(default_factory=Usage)
    uncounted: int = 0  # tokens, about, of answers that broke off before any usage
    spent_on_summaries: Usage | None = None  # of that; None when there is no whole summary
    tool_calls: int = 0  # of the server's tools, results or not
    rounds: int = 0
    last_round: RoundFinished | None = None  # when nothing was said after it
    is_message_cut: bool = False
    notes: tuple[Item, ...] = ()  # for the model, behind the outputs of what is pending


async def run_turn(
    providers: Sequence[Provider],
    call: ModelCall,
    run_tool: RunTool,
    so_far: TurnProgress,
    retries: int,
) -> AsyncGenerator[AgentEvent]:
    """The turn from where it stands; the call shows the model everything up to there."""
    turn = _Turn(call, so_far)
    for _ in range(so_far.rounds, MAX_ITERATIONS):
        if turn.must_ask:
            async with aclosing(turn.compact(providers, retries)) as events:
                async for event in events:
                    yield event
            async with aclosing(turn.ask(providers, retries)) as events:
                async for event in events:
                    yield event
        if turn.end is None:
            async with aclosing(turn.run_tools(run_tool)) as results:
                async for result in results:
                    yield result
        if turn.end is not None:
            yield turn.end
            return
    yield TurnFinished(turn.usage, "max_iterations")


class _Turn:
    """What was said and done so far, and what is next."""

    def __init__(self, call: ModelCall, so_far: TurnProgress) -> None:
        self.usage, self._uncounted = so_far.usage, so_far.uncounted
        self.end: TurnFinished | TurnParked | None = None
        self._call = call
        self._summary_tokens = (so_far.spent_on_summaries or Usage()).output_tokens
        self._must_continue = so_far.is_message_cut
        self._client_names = {tool["name"] for tool in call.client_tools}
        self._pending = list(so_far.pending)
        self._called = so_far.tool_calls
        self._notes = so_far.notes
        last = so_far.last_round
        if last is not None and last.reason != "tool_calls":
            self.end = self._finished(last)

    @property
    def must_ask(self) -> bool:
        return self.end is None and not self._pending and not self._has_called_too_often

    @property
    def _has_called_too_often(self) -> bool:
        limit = self._call.max_tool_calls
        return limit is not None and self._called > limit

    async def compact(
        self, providers: Sequence[Provider], retries: int
    ) -> AsyncGenerator[AgentEvent]:
        """Where the conversation has become too long, its summary takes its place before the model is asked."""
        plan = None if self._must_continue else plan_compaction(self._call)
        self._must_continue = False  # a message that was cut off is continued below its own words
        if plan is None:
            return
        asked = summary_call(self._call, plan.covered)
        async with aclosing(compact(providers, asked, retries, plan.context)) as events:
            async for event in events:
                yield event
                if isinstance(event, Compaction) and event.context is not None:
                    self.usage += event.usage
                    self._summary_tokens += event.usage.output_tokens
                    self._replace_conversation(list(event.context.items))

    def _replace_conversation(self, items: list[Item]) -> None:
        """The ids of calls that are no longer shown stay taken: the ledger knows them."""
        used = self._call.used_call_ids | all_call_ids(self._call.items)
        self._call = replace(self._call, items=items, used_call_ids=used)

    async def ask(self, providers: Sequence[Provider], retries: int) -> AsyncGenerator[AgentEvent]:
        left = self._tokens_left()
        if left is not None and left <= 0:
            self.end = TurnFinished(self.usage, "max_output_tokens")
            return
        said = AnswerBuffer()
        call = replace(self._call, max_output_tokens=left)
        async with aclosing(ask(providers, call, retries)) as events:
            async for event in events:
                said.add(event)
                if not isinstance(event, ModelFinished):
                    yield event
        last = said.finish
        finished = RoundFinished(last.reason, last.usage, last.message, last.upstream_ids)
        self.usage += finished.usage
        self._uncounted += last.uncounted
        yield finished
        self._pending = said.calls()
        self._called += len(self._served())
        self._call, self._notes = follow(self._call, said), last.notes
        if finished.is_cut_short or not self._pending:
            self.end = self._finished(finished)

    async def run_tools(self, run_tool: RunTool) -> AsyncGenerator[ToolFinished]:
        """Run what the server runs, each result as it comes; the client answers the rest in its next request."""
        served, finished = self._served(), []
        async with aclosing(self._results(served, run_tool)) as results:
            async for result in results:
                finished.append(result)
                yield result
        if self.end is None and len(finished) < len(served):
            self.end = TurnParked()
        elif self.end is None and len(served) < len(self._pending):
            self.end = TurnFinished(self.usage)
        self._call = self._call.followed_by(
            [*(_output_item(result) for result in finished), *self._notes]
        )
        self._pending = []

    async def _results(
        self, served: list[ToolCall], run_tool: RunTool
    ) -> AsyncGenerator[ToolFinished]:
        if self._has_called_too_often:
            self.end = TurnFinished(self.usage, "max_tool_calls")
            told = TOO_MANY_CALLS.format(limit=self._call.max_tool_calls)
            for tool_call in served:
                yield ToolFinished(tool_call.call_id, told, is_error=True)
            return
        running = {asyncio.ensure_future(run_tool(tool_call)): tool_call for tool_call in served}
        left = set(running)
        try:
            while left:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in running if task in done]:  # in the order of the calls
                    result = task.result()
                    if result is not None:
                        yield ToolFinished(running[task].call_id, result.output, result.is_error)
        finally:
            for task in left:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _tokens_left(self) -> int | None:
        """The limit is one for the whole turn, however often the model is asked."""
        limit = self._call.max_output_tokens
        answered = self.usage.output_tokens + self._uncounted - self._summary_tokens
        return None if limit is None else limit - answered

    def _served(self) -> list[ToolCall]:
        return [
            tool_call for tool_call in self._pending if tool_call.name not in self._client_names
        ]

    def _finished(self, last: RoundFinished) -> TurnFinished:
        return TurnFinished(self.usage, INCOMPLETE_REASONS.get(last.reason), last.message)


def _output_item(finished: ToolFinished) -> Item:
    return {"type": "function_call_output", "call_id": finished.call_id, "output": finished.output}
