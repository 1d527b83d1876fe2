"""Conversations that are too long: for the threshold, for the window, and for an upstream that says so."""

from dataclasses import replace

import pytest

from gateway_app.agent.budget import Budget, Correction
from gateway_app.agent.compaction import compact
from gateway_app.agent.events import (
    AgentEvent,
    Compaction,
    ModelFailed,
    ToolFinished,
    Truncation,
    TurnFinished,
)
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.model_faults import ContextOverflow, ModelFault
from gateway_app.agent.summaries import PROMPT, summarised_entries, summary_call
from gateway_app.agent.tools import ToolCall, ToolResult
from responses_app.protocol.items import CompactedContext, Item
from tests.support.plain_models import LOOK, Answer, PlainModel, asks_for, writes

LONG = "word " * 900
WINDOW = 2000


def user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": text}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": text}


TALK = [user(f"first {LONG}"), answer(f"one {LONG}"), user(f"second {LONG}"), answer("two"), user("third")]
COMPACTING = ModelCall("m", TALK, budget=Budget(is_compacting=True))
TRUNCATING = ModelCall("m", TALK, budget=Budget(WINDOW, is_truncating=True))


def is_summary(call: ModelCall) -> bool:
    return (call.instructions or "").startswith(PROMPT)


def too_long(window: int | None = WINDOW) -> ModelFailed:
    return ModelFailed(
        "too long",
        "context_length_exceeded",
        model_fault=ModelFault.CONTEXT_OVERFLOW,
        overflow=ContextOverflow(window=window),
    )


def small_server(call: ModelCall) -> Answer:
    """Takes what fits into its window, and refuses the rest."""
    if call.estimate() > WINDOW:
        return too_long()
    if is_summary(call):
        return writes("the summary")
    return writes("three")


async def no_tool(call: ToolCall) -> ToolResult:
    raise AssertionError


async def run(model: PlainModel, call: ModelCall) -> list[AgentEvent]:
    return [event async for event in run_turn([model], call, no_tool, TurnProgress(), retries=0)]


def kept_texts(call: ModelCall) -> list[str]:
    return [str(item["content"])[:8] for item in call.items]


async def test_a_refusal_for_length_compacts_and_asks_once_more() -> None:
    model = PlainModel(small_server)
    events = await run(model, COMPACTING)
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].incomplete_reason is None
    assert sum(isinstance(event, Compaction) for event in events) == 2
    assert kept_texts(model.calls[-1]) == ["[Summary", "third"]
    assert all(call.estimate() <= WINDOW for call in model.calls[1:])
    assert sum(map(is_summary, model.calls)) > 1  # in pieces: the conversation is twice the window


async def test_a_second_refusal_is_the_end() -> None:
    model = PlainModel(lambda call: writes("the summary") if is_summary(call) else too_long())
    with pytest.raises(ModelFailed) as failed:
        await run(model, COMPACTING)
    assert failed.value.code == "context_length_exceeded"
    assert len([call for call in model.calls if not is_summary(call)]) == 2


async def test_without_compaction_a_refusal_fails_as_it_is() -> None:
    model = PlainModel(small_server)
    with pytest.raises(ModelFailed):
        await run(model, replace(COMPACTING, budget=Budget()))
    assert len(model.calls) == 1


async def test_one_question_that_is_too_long_can_not_be_shortened() -> None:
    model = PlainModel(small_server)
    with pytest.raises(ModelFailed):
        await run(model, replace(COMPACTING, items=[user(LONG * 3)]))
    assert len(model.calls) == 1


async def test_a_refusal_without_numbers_is_understood_too() -> None:
    def server(call: ModelCall) -> Answer:
        found = small_server(call)
        return too_long(None) if isinstance(found, ModelFailed) else found

    model = PlainModel(server)
    events = await run(model, COMPACTING)
    assert isinstance(events[-1], TurnFinished)


async def test_a_stream_without_output_may_mean_the_length() -> None:
    def server(call: ModelCall) -> Answer:
        found = small_server(call)
        if isinstance(found, ModelFailed):
            found = ModelFailed("The model's stream was cut.", is_transient=True)
            found.is_empty = True
        return found

    model = PlainModel(server)
    events = await run(model, replace(COMPACTING, budget=Budget(WINDOW, is_compacting=True)))
    assert isinstance(events[-1], TurnFinished)
    model = PlainModel(server)
    short = replace(COMPACTING, items=[user("a"), answer("b"), user("c")], budget=Budget(10**6, is_compacting=True))
    await run(model, short)
    assert len(model.calls) == 1


async def test_truncation_keeps_to_the_window_and_is_reported() -> None:
    model = PlainModel(small_server)
    events = await run(model, TRUNCATING)
    assert [event for event in events if isinstance(event, Truncation)] == [Truncation(2, 3)]
    assert kept_texts(model.calls[0]) == ["second w", "two", "third"]
    assert model.calls[0].estimate() <= WINDOW - 500


async def test_truncation_drops_more_where_the_upstream_refuses() -> None:
    def smaller(call: ModelCall) -> Answer:
        return too_long(400) if call.estimate() > 400 else writes("three")

    model = PlainModel(smaller)
    await run(model, TRUNCATING)
    assert kept_texts(model.calls[-1]) == ["third"]


async def test_rounds_of_a_long_turn_are_dropped_while_it_runs() -> None:
    async def large(call: ToolCall) -> ToolResult:
        return ToolResult(f"{call.call_id} {LONG}")

    model = PlainModel(lambda call: asks_for("look") if len(model.calls) < 4 else writes("done"))
    call = replace(TRUNCATING, items=[user("look around")], tools=(LOOK,))
    events = [event async for event in run_turn([model], call, large, TurnProgress(), retries=0)]
    assert sum(isinstance(event, ToolFinished) for event in events) == 3
    assert [item["type"] for item in model.calls[-1].items] == ["message", "function_call", "function_call_output"]
    last = model.calls[-1].items[1:]
    assert last[0]["call_id"] == last[1]["call_id"]
    made = {event.call_id for event in events if isinstance(event, ToolFinished)}
    assert made <= model.calls[-1].used_call_ids | {last[0]["call_id"]}


async def test_the_upstreams_count_moves_the_threshold() -> None:
    correction = Correction()
    budget = Budget(10_000, is_compacting=True, correction=correction)
    call = replace(COMPACTING, budget=budget, compact_threshold=4000)
    estimated = call.estimate()
    assert estimated < 4000
    await run(PlainModel(lambda call: writes("ok", input_tokens=2 * estimated)), call)
    assert correction.ratio == 2.0
    model = PlainModel(lambda call: writes("ok"))
    events = await run(model, call)
    assert any(isinstance(event, Compaction) for event in events)


async def test_a_summary_in_pieces_covers_everything_once() -> None:
    talk = [user(f"{number} {LONG}") for number in range(6)] + [user("渡" * 3000)]
    asked = summary_call(replace(COMPACTING, budget=Budget(WINDOW)), talk)
    model = PlainModel(lambda call: writes(f"summary {len(model.calls)}"))
    contexts: list[str] = []

    def note(summary: str) -> CompactedContext:
        contexts.append(summary)
        return CompactedContext()

    async for _ in compact([model], asked, 0, note):
        pass
    texts = ""
    for number, call in enumerate(model.calls):
        assert call.estimate() <= WINDOW
        entries = summarised_entries(call) or []
        earlier = [entry["text"] for entry in entries if entry["from"] == "an earlier summary"]
        assert earlier == ([f"summary {number}"] if number else [])
        texts += "".join(entry["text"] for entry in entries if entry["from"] == "user")
    assert texts == "".join(str(item["content"]) for item in talk)
    assert contexts == [f"summary {len(model.calls)}"]


async def test_a_refusal_that_names_the_known_window_is_recovered_from() -> None:
    """The upstream finds twice as many tokens as the estimate."""

    def counts_more(call: ModelCall) -> Answer:
        tokens = call.estimate() * 3
        if tokens > WINDOW:
            failure = too_long()
            failure.overflow = ContextOverflow(tokens, WINDOW)
            return failure
        return writes("the summary" if is_summary(call) else "three")

    talk = [user("first " * 300), answer("one " * 300), user("second " * 100), answer("two " * 100), user("third")]
    for budget in (Budget(WINDOW, is_truncating=True), Budget(WINDOW, is_compacting=True)):
        model = PlainModel(counts_more)
        events = await run(model, ModelCall("m", talk, budget=budget))
        assert isinstance(events[-1], TurnFinished)
        assert model.calls[-1].items != talk


async def test_a_server_that_counts_the_requested_answer_too_is_satisfied() -> None:
    def counts_both(call: ModelCall) -> Answer:
        if call.estimate() + (call.max_output_tokens or 0) > WINDOW:
            return too_long()
        return writes("the summary" if is_summary(call) else "three")

    for budget in (Budget(WINDOW, is_truncating=True), Budget(WINDOW, is_compacting=True)):
        model = PlainModel(counts_both)
        call = ModelCall("m", TALK[2:], budget=budget, max_output_tokens=1400)
        events = await run(model, call)
        assert isinstance(events[-1], TurnFinished)
