"""Compaction: a conversation is replaced by its summary, within a turn or as a turn of its own."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import (
    AgentEvent,
    AnswerStarted,
    Compaction,
    ModelFailed,
    OpaqueItem,
    ProtocolDeviation,
    RoundFinished,
    TurnFinished,
    Usage,
)
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.agent.rounds import ask
from gateway_app.agent.summaries import (
    asked_after,
    in_pieces,
    piece_call,
    summary_call,
    summary_note,
    within_reserve,
)
from responses_app.protocol.items import (
    COMPACTION,
    KEPT,
    MARK,
    OUTPUTS,
    SUMMARY,
    CompactedContext,
    Item,
    is_from_model,
    item_text,
)
from responses_app.protocol.sent_reasoning import request_sizes

# A summary at its limit is one, and so is a text beside calls, which are not run.
SUMMARY_ENDS = ("stop", "length", "tool_calls")
NO_SUMMARY = "The model gave no whole summary of the conversation ({reason})."
USER_ROLES = ("user",)
RULE_ROLES = ("system", "developer")
INPUT_ROLES = USER_ROLES + RULE_ROLES
# At least one part in so many must be new since the last summary, or another one gains nothing.
FRESH_SHARE = 4


@dataclass(frozen=True)
class CompactionPlan:
    """Which items of a conversation are summarised, and which stay beside the summary."""

    covered: list[Item]
    kept: list[Item]  # in front of the summary: rules, and the request the model is working on
    question: list[Item]  # behind the summary: input the model has not answered yet

    def context(self, summary: str) -> CompactedContext:
        items = unreadable(self.covered)
        items += map(_marked_kept, self.kept)
        items.append(summary_note(summary))
        items += map(_marked_kept, self.question)
        return CompactedContext(items, replaces_all=True)


@dataclass(frozen=True)
class CompactionTurn:
    """A turn whose output is the messages that are kept, then the summary of the rest."""

    call: ModelCall  # with the conversation, and instructions for its summary
    kept: tuple[Item, ...]  # those that earlier attempts did not emit
    carried: tuple[Item, ...] = ()  # compactions of an upstream, which can't be summarised

    def context(self, summary: str) -> CompactedContext:
        return CompactedContext([*self.carried, summary_note(summary)])


def plan_compaction(call: ModelCall, *, is_refused: bool = False) -> CompactionPlan | None:
    """None while the conversation is short enough, or a summary would make it no shorter.

    A conversation that the upstream refuses as too long is not short enough.
    """
    plan = _plan(call)
    fresh_tokens = 0
    sizes = request_sizes(call.items, call.budget.sent_reasoning)
    for item, size in zip(plan.covered, sizes, strict=False):  # they begin the conversation
        if MARK not in item:
            fresh_tokens += size
    if is_refused:
        if not fresh_tokens:
            return None
        return plan
    threshold = call.compact_threshold
    if threshold is None or call.input_tokens() <= threshold:
        return None
    if fresh_tokens * FRESH_SHARE < threshold:
        return None
    return plan


def _plan(call: ModelCall) -> CompactionPlan:
    items = call.items
    end = len(items)
    while end and _is_message_from(items[end - 1], INPUT_ROLES):
        end -= 1
    if end and items[end - 1]["type"] in OUTPUTS:
        end = _unseen_start(call, end)
    covered, question = items[:end], items[end:]
    kept = [item for item in covered if _is_message_from(item, RULE_ROLES)]
    is_asked = any(_is_message_from(item, USER_ROLES) for item in question)
    if not is_asked:
        kept += _last_request(covered)
    return CompactionPlan(covered, kept, question)


def _unseen_start(call: ModelCall, end: int) -> int:
    """Of a last round whose images no model has seen, and no summary can hold.

    ``end`` if there are none, or if the round fills half of the room.
    """
    start = end
    while start and call.items[start - 1]["type"] in OUTPUTS:
        start -= 1
    while start and is_from_model(call.items[start - 1]) and MARK not in call.items[start - 1]:
        start -= 1
    if not any(map(_has_images, call.items[start:end])):
        return end
    sizes = request_sizes(call.items, call.budget.sent_reasoning)
    if call.budget.window and sum(sizes[start:end]) * 2 > call.room():
        return end
    return start


def _has_images(item: Item) -> bool:
    parts = item.get("output")
    if not isinstance(parts, list):
        return False
    return any(part.get("type") == "input_image" for part in parts)


async def compact(
    providers: Sequence[Provider],
    asked: ModelCall,
    retries: int,
    make_context: Callable[[str], CompactedContext],
) -> AsyncGenerator[AnswerStarted | ProtocolDeviation | Compaction]:
    """Ask for a summary; no client sees any of it before it is complete.

    A conversation that is larger than the window is summed up in pieces, one after another. One
    that is refused as too long all the same is taken apart once more.
    """
    yield Compaction()
    done = _Summary()
    pieces = in_pieces(asked)
    is_taken_apart = False
    while pieces:
        request = piece_call(asked, pieces[0], done.text)
        try:
            async with aclosing(done.ask(providers, request, retries)) as events:
                async for event in events:
                    yield event
        except ModelFailed as failure:
            failure.usage = done.usage + failure.usage
            if is_taken_apart or failure.overflow is None:
                raise
            is_taken_apart = True
            asked = asked_after(asked, request, failure.overflow)
            pieces = in_pieces(asked)
            if len(pieces) == 1:  # the same request again
                raise
            done.text = ""
        else:
            pieces = pieces[1:]
    yield Compaction(make_context(done.text), done.usage)


@dataclass
class _Summary:
    """Of the pieces up to now."""

    text: str = ""
    usage: Usage = field(default_factory=Usage)

    async def ask(
        self, providers: Sequence[Provider], request: ModelCall, retries: int
    ) -> AsyncGenerator[AnswerStarted | ProtocolDeviation]:
        answer = AnswerBuffer()
        finished: RoundFinished | None = None
        async with aclosing(ask(providers, request, retries, answer)) as events:
            async for event in events:
                if isinstance(event, RoundFinished):
                    finished = event
                elif isinstance(event, AnswerStarted | ProtocolDeviation):
                    yield event
        assert finished is not None  # the last event of every round
        texts = [item_text(item) for item in answer.items() if item["type"] == "message"]
        summary = "".join(texts).strip()
        if finished.reason not in SUMMARY_ENDS or not summary:
            raise ModelFailed(NO_SUMMARY.format(reason=finished.reason), usage=finished.usage)
        self.text = within_reserve(request, summary)
        self.usage += finished.usage


async def run_compaction(
    providers: Sequence[Provider], turn: CompactionTurn, retries: int, spent: Usage | None
) -> AsyncGenerator[AgentEvent]:
    """``spent`` is the usage of a summary that an earlier attempt completed."""
    for item in turn.kept:
        yield OpaqueItem(item)
    if spent is None:
        spent = Usage()
        covered = await turn.call.readable(turn.call.items)
        asked = summary_call(turn.call, covered, turn.call.instructions)
        async with aclosing(compact(providers, asked, retries, turn.context)) as events:
            async for event in events:
                yield event
                if isinstance(event, Compaction):
                    spent += event.usage
    yield TurnFinished(spent)


def unreadable(items: list[Item]) -> list[Item]:
    """Compactions of an upstream: only the upstream can read them, so they stay."""
    return [item for item in items if item["type"] == COMPACTION]


def _is_message_from(item: Item, roles: tuple[str, ...]) -> bool:
    return item["type"] == "message" and item["role"] in roles and item.get(MARK) != SUMMARY


def _last_request(items: list[Item]) -> list[Item]:
    """The user's last message, with the user's messages right before it."""
    end = len(items)
    while end and not _is_message_from(items[end - 1], USER_ROLES):
        end -= 1
    start = end
    while start and _is_message_from(items[start - 1], USER_ROLES):
        start -= 1
    return items[start:end]


def _marked_kept(item: Item) -> Item:
    if item["type"] != "message" or item["role"] == "assistant":
        return item  # of the round whose results no model has seen
    return {"type": "message", "role": item["role"], "content": item["content"], "compacted": KEPT}
