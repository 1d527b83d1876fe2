"""The agent loop: ask the model, run the tools it calls, ask again, until it is done."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from gateway_app.agent.answer_buffer import AnswerBuffer, follow
from gateway_app.agent.compaction import CompactionPlan, compact, plan_compaction
from gateway_app.agent.context import as_note, with_outputs
from gateway_app.agent.events import (
    INCOMPLETE_REASONS,
    AgentEvent,
    Compaction,
    ModelFailed,
    ProtocolDeviation,
    RoundEvent,
    RoundFinished,
    ToolFinished,
    Truncation,
    TurnFinished,
    TurnParked,
    UpstreamAbandoned,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.overflow import call_after_overflow
from gateway_app.agent.progress import TurnProgress as TurnProgress
from gateway_app.agent.repeats import Repeats
from gateway_app.agent.rounds import ask
from gateway_app.agent.summaries import summary_call
from gateway_app.agent.tool_round import ToolRound, always_given, output_item
from gateway_app.agent.tools import ApprovalEvent, AskConsent, RunTool, ToolCall
from gateway_app.agent.turn_limits import (
    EMPTY,
    TOO_MANY_CALLS,
    TOO_MANY_ROUNDS,
    limit_message,
    without_server_tools,
)
from responses_app.protocol.items import CompactedContext, Item, all_call_ids, item_text


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
    while True:
        if turn.must_ask:
            async with aclosing(turn.make_room(providers, retries)) as room_events:
                async for room_event in room_events:
                    yield room_event
        next_call = turn.next_call()
        if next_call is not None:
            async with aclosing(turn.ask(providers, next_call, retries)) as events:
                async for event in events:
                    yield event
        if turn.end is None:
            async with aclosing(turn.run_tools(run_tool, ask_consent)) as results:
                async for result in results:
                    yield result
        if turn.end is not None:
            yield turn.end
            return


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
        self._rounds = progress.rounds
        self._repeats = Repeats(progress.items)
        self._is_refused = False  # the upstream refused this round's request as too long
        self._has_no_summary = False  # the model gives none in this turn
        self._is_asked_again = progress.is_asked_again
        last = progress.last_round
        if last is not None and last.reason != "tool_calls":
            self._end(last, is_empty=progress.is_answer_empty)
            self._add_items(self._call.items)

    @property
    def must_ask(self) -> bool:
        return self.end is None and not self._pending and not self._has_called_too_often

    @property
    def _has_called_too_often(self) -> bool:
        limit = self._call.max_tool_calls
        return limit is not None and self._called > limit

    @property
    def _tools_are_over(self) -> bool:
        """In the last round, the one that begins next or has just ended."""
        return self._rounds >= self._call.max_iterations or self._repeats.must_stop

    async def make_room(
        self, providers: Sequence[Provider], retries: int
    ) -> AsyncGenerator[AgentEvent]:
        """Shorten a conversation that is too long: by its oldest rounds, or to its summary."""
        if self._must_continue:  # the model continues a message that was cut off below that message
            self._must_continue = False
            return
        if self._call.budget.is_truncating and self._call.budget.window:
            for dropped in self._drop_oldest():
                yield dropped
            if self._is_refused:
                return
        if not self._has_no_summary:
            plan = plan_compaction(self._call, is_refused=self._is_refused)
            if plan is None:
                return
            async with aclosing(self._compact(providers, retries, plan)) as events:
                async for event in events:
                    yield event
        if self._has_no_summary and (self._is_refused or not self._call.fits()):
            for dropped in self._drop_oldest():
                yield dropped

    def _drop_oldest(self) -> Iterator[Truncation]:
        kept = self._call.fitted_items()
        dropped = len(self._call.items) - len(kept)
        if dropped:
            self._replace_conversation(kept)
            yield Truncation(dropped, len(kept))

    async def _compact(
        self, providers: Sequence[Provider], retries: int, plan: CompactionPlan
    ) -> AsyncGenerator[AgentEvent]:
        """Replace the conversation by its summary; without one it stays, for the rest of the turn."""
        asked = summary_call(self._call, await self._call.readable(plan.covered))
        try:
            async with aclosing(compact(providers, asked, retries, plan.context)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Compaction) and event.context is not None:
                        self._spend_on_summary(event.usage)
                        self._replace_conversation(list(event.context.items))
        except ModelFailed as failure:
            self._has_no_summary = True
            self._spend_on_summary(failure.usage)
            yield Compaction(CompactedContext(), failure.usage)  # replaces nothing
            yield ProtocolDeviation("no summary")

    def _spend_on_summary(self, usage: Usage) -> None:
        self.usage += usage
        self._summary_tokens += usage.output_tokens

    def _replace_conversation(self, items: list[Item]) -> None:
        """The ids of calls that are no longer in the items stay used: the ledger has them."""
        used = self._call.used_call_ids | all_call_ids(self._call.items)
        self._call = replace(self._call, items=items, used_call_ids=used)

    async def ask(
        self, providers: Sequence[Provider], call: ModelCall, retries: int
    ) -> AsyncGenerator[RoundEvent]:
        """One round; it has no end if the request is too long and the conversation can be shortened."""
        answer = AnswerBuffer()
        try:
            async with aclosing(ask(providers, call, retries, answer)) as events:
                async for event in events:
                    self._note(event, answer)
                    yield event
        except ModelFailed as failure:
            if answer.has_deltas or not self._shortens(failure):
                raise

    def _shortens(self, failure: ModelFailed) -> bool:
        """May the round be tried once more, with a shorter conversation?"""
        if self._is_refused or self._call.cut_at is not None:
            return False
        shorter = call_after_overflow(self._call, failure)
        if shorter is None:
            return False
        self._call = shorter
        self._is_refused = True
        return True

    def next_call(self) -> ModelCall | None:
        """None if the model is not asked. One token limit applies to all rounds of the turn."""
        if not self.must_ask:
            return None
        call = self._call
        if self._is_last_round():
            call = without_server_tools(call)
        limit = call.max_output_tokens
        if limit is None:
            return call
        tokens_left = limit - (self.usage.output_tokens - self._summary_tokens)
        if call.resume is not None:  # its upstream was sent the limit, and counts by itself
            tokens_left = max(1, tokens_left)
        if tokens_left <= 0:
            self.end = TurnFinished(self.usage, "max_output_tokens")
            return None
        return replace(call, max_output_tokens=tokens_left)

    def _is_last_round(self) -> bool:
        """The model has no tools in it, so that the turn ends in words."""
        is_at_limit = self._rounds + 1 >= self._call.max_iterations
        return bool(self._call.tools) and (is_at_limit or self._repeats.must_stop)

    def _note(self, event: RoundEvent, answer: AnswerBuffer) -> None:
        if isinstance(event, RoundFinished):
            self._end_round(event, answer)
        elif isinstance(event, UpstreamAbandoned):
            # Its answer is not picked up, so its upstream will not count it.
            self.usage += self._open_usage
            self._open_usage = Usage()

    def _end_round(self, finished: RoundFinished, answer: AnswerBuffer) -> None:
        self.usage += finished.usage
        self._rounds += 1
        self._is_refused = False
        self._pending = answer.calls()
        self._called += len(self._served())
        self._notes = finished.notes
        if finished.is_cut_short or not self._pending:
            is_empty = not any(item_text(item).strip() for item in answer.items())
            self._end(finished, is_empty=is_empty)
        if self.end is None:
            self._call = follow(self._call, answer)

    async def run_tools(
        self, run_tool: RunTool, ask_consent: AskConsent
    ) -> AsyncGenerator[ToolFinished | ApprovalEvent]:
        """Run the server's tools, each result as it comes; the client answers the other calls."""
        served = self._served()
        outputs: list[Item] = []
        refusal = self._refusal_of_calls(served)
        if refusal:
            for tool_call in served:
                yield ToolFinished(tool_call.call_id, refusal, is_error=True)
            return
        calls = {tool_call.call_id: tool_call for tool_call in served}
        tool_round = ToolRound(served, self._call.tools, run_tool, ask_consent)
        async with aclosing(tool_round.results()) as results:
            async for result in results:
                if isinstance(result, ToolFinished):
                    noted = self._repeats.noted(calls[result.call_id], result.output)
                    result = replace(result, output=noted)
                    outputs.append(output_item(result))
                yield result
        if tool_round.waits_for:
            self.end = TurnParked(tuple(tool_round.waits_for))
        elif tool_round.has_requests or len(served) < len(self._pending):
            self.end = TurnFinished(self.usage)
        self._call = self._call.followed_by([])
        self._add_items(with_outputs(self._call.items, outputs))
        self._pending = []

    def _add_items(self, items: list[Item]) -> None:
        """With the notes behind them, once."""
        self._call = replace(self._call, items=items + list(self._notes))
        self._notes = ()

    def _served(self) -> list[ToolCall]:
        served = [call for call in self._pending if call.name not in self._client_names]
        return [replace(call, together=len(served), number=n) for n, call in enumerate(served)]

    def _refusal_of_calls(self, served: list[ToolCall]) -> str:
        """Why the calls of this round are not run; the turn ends with it."""
        if self._has_called_too_often:
            self.end = TurnFinished(self.usage, "max_tool_calls")
            return TOO_MANY_CALLS.format(limit=self._call.max_tool_calls)
        if self._tools_are_over:
            self.end = TurnFinished(
                self.usage, "max_iterations", limit_message(self._call, self._repeats)
            )
            return TOO_MANY_ROUNDS
        return ""

    def _end(self, last: RoundFinished, *, is_empty: bool) -> None:
        """The model calls nothing more."""
        is_missing = is_empty and last.reason == "stop" and self._called > 0
        if is_missing and not self._is_asked_again:
            self._is_asked_again = True
            self._notes = (as_note(EMPTY),)
            return
        reason = INCOMPLETE_REASONS.get(last.reason)
        message = last.message
        # A model that called tools may have called more, if it had had them in its last round.
        if reason is None and self._called and self._call.tools and self._tools_are_over:
            reason = "max_iterations"
            message = limit_message(self._call, self._repeats)
        self.end = TurnFinished(self.usage, reason, message)
