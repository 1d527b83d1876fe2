"""The agent loop: ask the model, run the tools it calls, ask again, until it is done."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from gateway_app.agent.answer_buffer import AnswerBuffer, follow
from gateway_app.agent.compaction import compact, plan_compaction, summary_call
from gateway_app.agent.context import with_images, with_outputs
from gateway_app.agent.events import (
    INCOMPLETE_REASONS,
    AgentEvent,
    Compaction,
    RoundEvent,
    RoundFinished,
    ToolFinished,
    TurnFinished,
    TurnParked,
    UpstreamAbandoned,
    Usage,
)
from gateway_app.agent.model_call import CutAt, ModelCall, Provider
from gateway_app.agent.rounds import ask
from gateway_app.agent.tool_round import ToolRound, always_given
from gateway_app.agent.tools import ApprovalEvent, AskConsent, RunTool, ToolCall
from responses_app.protocol.items import Item, all_call_ids

MAX_ITERATIONS = 90
TOO_MANY_CALLS = "Not carried out: this turn may call tools {limit} times (max_tool_calls)."


@dataclass(frozen=True)
class TurnProgress:
    """What earlier attempts of a turn did; empty for a new turn."""

    items: tuple[Item, ...] = ()  # the model's output, and the outputs of its calls
    pending: tuple[ToolCall, ...] = ()  # whole calls without a result
    usage: Usage = field(default_factory=Usage)  # estimated for answers that broke off
    # The estimate of an answer that runs on at its upstream, which counts it when it is picked up.
    open_usage: Usage = field(default_factory=Usage)
    # The part of the usage that went into summaries; None if no summary was completed.
    spent_on_summaries: Usage | None = None
    tool_calls: int = 0  # of the server's tools, with results or without
    rounds: int = 0
    last_round: RoundFinished | None = None  # if no output follows it
    cut_at: CutAt | None = None  # where the last message was cut, if it was
    notes: tuple[Item, ...] = ()  # for the model, behind the outputs of the pending calls

    @property
    def is_message_cut(self) -> bool:
        return self.cut_at is not None


async def run_turn(
    providers: Sequence[Provider],
    call: ModelCall,
    run_tool: RunTool,
    progress: TurnProgress,
    retries: int,
    ask_consent: AskConsent = always_given,
) -> AsyncGenerator[AgentEvent]:
    """The rest of the turn; the call has everything up to there."""
    turn = _Turn(call, progress)
    for _ in range(progress.rounds, MAX_ITERATIONS):
        if turn.must_ask:
            async with aclosing(turn.compact(providers, retries)) as summary_events:
                async for summary_event in summary_events:
                    yield summary_event
        next_call = turn.next_call()
        if next_call is not None:
            answer = AnswerBuffer()
            async with aclosing(ask(providers, next_call, retries, answer)) as events:
                async for event in events:
                    turn.note(event, answer)
                    yield event
        if turn.end is None:
            async with aclosing(turn.run_tools(run_tool, ask_consent)) as results:
                async for result in results:
                    yield result
        if turn.end is not None:
            yield turn.end
            return
    yield TurnFinished(turn.usage, "max_iterations")


class _Turn:
    """What is done, and what is next."""

    def __init__(self, call: ModelCall, progress: TurnProgress) -> None:
        self.usage = progress.usage
        self._open_usage = progress.open_usage
        self.end: TurnFinished | TurnParked | None = None
        self._call = call
        self._summary_tokens = 0
        if progress.spent_on_summaries is not None:
            self._summary_tokens = progress.spent_on_summaries.output_tokens
        self._must_continue = progress.is_message_cut or call.resume is not None
        self._client_names = {tool["name"] for tool in call.client_tools}
        self._pending = list(progress.pending)
        self._called = progress.tool_calls
        self._notes = progress.notes
        last = progress.last_round
        if last is not None and last.reason != "tool_calls":
            self._finish(last)

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
        """Replace a conversation that is too long by its summary."""
        if self._must_continue:  # the model continues a message that was cut off below that message
            self._must_continue = False
            return
        plan = plan_compaction(self._call)
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
        """The ids of calls that are no longer in the items stay used: the ledger has them."""
        used = self._call.used_call_ids | all_call_ids(self._call.items)
        self._call = replace(self._call, items=items, used_call_ids=used)

    def next_call(self) -> ModelCall | None:
        """None if the model is not asked. One token limit applies to all rounds of the turn."""
        if not self.must_ask:
            return None
        limit = self._call.max_output_tokens
        if limit is None:
            return self._call
        tokens_left = limit - (self.usage.output_tokens - self._summary_tokens)
        if self._call.resume is not None:  # its upstream was sent the limit, and counts by itself
            tokens_left = max(1, tokens_left)
        if tokens_left <= 0:
            self.end = TurnFinished(self.usage, "max_output_tokens")
            return None
        return replace(self._call, max_output_tokens=tokens_left)

    def note(self, event: RoundEvent, answer: AnswerBuffer) -> None:
        if isinstance(event, RoundFinished):
            self._end_round(event, answer)
        elif isinstance(event, UpstreamAbandoned):
            # Its answer is not picked up, so its upstream will not count it.
            self.usage += self._open_usage
            self._open_usage = Usage()

    def _end_round(self, finished: RoundFinished, answer: AnswerBuffer) -> None:
        self.usage += finished.usage
        self._pending = answer.calls()
        self._called += len(self._served())
        self._call = follow(self._call, answer)
        self._notes = finished.notes
        if finished.is_cut_short or not self._pending:
            self._finish(finished)

    async def run_tools(
        self, run_tool: RunTool, ask_consent: AskConsent
    ) -> AsyncGenerator[ToolFinished | ApprovalEvent]:
        """Run the server's tools, each result as it comes; the client answers the other calls."""
        served = self._served()
        outputs: list[Item] = []
        if self._has_called_too_often:
            self.end = TurnFinished(self.usage, "max_tool_calls")
            output = TOO_MANY_CALLS.format(limit=self._call.max_tool_calls)
            for tool_call in served:
                yield ToolFinished(tool_call.call_id, output, is_error=True)
            return
        tool_round = ToolRound(served, self._call.tools, run_tool, ask_consent)
        async with aclosing(tool_round.results()) as results:
            async for result in results:
                if isinstance(result, ToolFinished):
                    outputs.append(_output_item(result))
                yield result
        if tool_round.waits_for:
            self.end = TurnParked(tuple(tool_round.waits_for))
        elif tool_round.has_requests or len(served) < len(self._pending):
            self.end = TurnFinished(self.usage)
        items = with_outputs(self._call.items, outputs) + list(self._notes)
        self._call = replace(self._call.followed_by([]), items=items)
        self._pending = []

    def _served(self) -> list[ToolCall]:
        return [call for call in self._pending if call.name not in self._client_names]

    def _finish(self, last: RoundFinished) -> None:
        incomplete_reason = INCOMPLETE_REASONS.get(last.reason)
        self.end = TurnFinished(self.usage, incomplete_reason, last.message)


def _output_item(finished: ToolFinished) -> Item:
    output = with_images(finished.output, finished.images)
    return {"type": "function_call_output", "call_id": finished.call_id, "output": output}
