"""A turn whose summary can't be had is answered all the same, as long as its conversation can be sent."""

from dataclasses import replace

import pytest

from gateway_app.agent.budget import Budget
from gateway_app.agent.events import (
    AgentEvent,
    CallArguments,
    CallFinished,
    CallStarted,
    Compaction,
    ModelFailed,
    ModelFinished,
    TextDelta,
    Truncation,
    TurnFinished,
    Usage,
)
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.model_faults import ContextOverflow
from gateway_app.agent.summaries import MAX_PIECES, PROMPT, summarised_entries, summary_call
from gateway_app.agent.tools import ToolCall, ToolResult
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import text_tokens
from tests.support.plain_models import Answer, PlainModel, writes

LONG = "word " * 900
WINDOW = 5000


def message(role: str, text: str) -> Item:
    return {"type": "message", "role": role, "content": text}


TALK = [
    message("user", f"first {LONG}"),
    message("assistant", f"one {LONG}"),
    message("user", f"second {LONG}"),
    message("assistant", f"two {LONG}"),
    message("user", "third"),
]
CALL = ModelCall("m", TALK, budget=Budget(WINDOW, is_compacting=True), compact_threshold=3000)
CUT_CALL = [
    TextDelta("notes"),
    CallStarted("c", "look"),
    CallArguments("c", "{}"),
    CallFinished("c"),
    ModelFinished("tool_calls", Usage(10, 1)),
]


def is_summary(call: ModelCall) -> bool:
    return (call.instructions or "").startswith(PROMPT)


async def no_tool(call: ToolCall) -> ToolResult:
    raise AssertionError


async def turn(model: PlainModel, call: ModelCall = CALL) -> list[AgentEvent]:
    return [event async for event in run_turn([model], call, no_tool, TurnProgress(), retries=0)]


def model_with(summary: Answer) -> PlainModel:
    return PlainModel(lambda call: summary if is_summary(call) else writes("three"))


@pytest.mark.parametrize("summary", [writes(""), ModelFailed("boom"), [ModelFinished("content_filter", Usage(9, 3))]])
async def test_a_conversation_that_fits_is_sent_without_a_summary(summary: Answer) -> None:
    model = model_with(summary)
    events = await turn(model)
    end = events[-1]
    assert isinstance(end, TurnFinished)
    assert end.incomplete_reason is None
    assert model.calls[-1].items == TALK
    assert sum(map(is_summary, model.calls)) == 1
    if not isinstance(summary, ModelFailed):  # the client pays for it
        assert end.usage.input_tokens == sum(e.usage.input_tokens for e in events if isinstance(e, Compaction)) + 10


async def test_a_conversation_that_does_not_fit_loses_its_oldest_turns_instead() -> None:
    model = model_with(writes(""))
    longer = replace(CALL, items=[message("user", LONG), message("assistant", LONG), *TALK])
    events = await turn(model, longer)
    assert any(isinstance(event, Truncation) for event in events)
    assert model.calls[-1].items == TALK


@pytest.mark.parametrize("summary", [[TextDelta("notes"), ModelFinished("length", Usage(10, 1))], CUT_CALL])
async def test_a_summary_with_an_unusual_end_is_taken(summary: Answer) -> None:
    model = model_with(summary)
    await turn(model)
    assert str(model.calls[-1].items[0]["content"]).endswith("notes")


async def test_a_summary_keeps_to_its_part_of_the_window() -> None:
    model = model_with(writes("many words " * 3000))
    await turn(model)
    assert model.calls[0].max_output_tokens == WINDOW // 4
    assert text_tokens(str(model.calls[-1].items[0]["content"])) < WINDOW // 4 + 100


async def test_a_summary_takes_a_limited_number_of_requests() -> None:
    model = model_with(writes("the summary"))
    talk = [message("user", f"{number} {LONG}") for number in range(150)]
    await turn(model, replace(CALL, items=[*talk, message("assistant", "yes"), message("user", "last")]))
    asked = [call for call in model.calls if is_summary(call)]
    assert len(asked) == MAX_PIECES
    assert "are left out" in str(asked[0].items[0]["content"])
    assert "149 word" in str(asked[-1].items[0]["content"])


async def test_results_that_no_model_has_seen_are_not_summarised() -> None:
    model = model_with(writes("the summary"))
    call: Item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    image: Item = {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "data:,"}],
    }
    await turn(model, replace(CALL, items=[*TALK, call, image]))
    last = model.calls[-1].items
    assert last[-2:] == [call, image]
    assert [str(item["content"])[:8] for item in last[:-2]] == ["third", "[Summary"]


def test_files_that_are_not_read_are_summarised_by_their_names() -> None:
    files: Item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_file", "filename": "other.bin", "file_data": "AAAA"}],
    }
    [entry] = summarised_entries(summary_call(CALL, [files])) or []
    assert entry["text"] == "[other.bin]"


async def test_a_piece_that_is_refused_is_taken_apart_by_the_upstreams_count() -> None:
    """The upstream finds three times as many tokens as the estimate, and the window is known."""

    def counts_more(call: ModelCall) -> Answer:
        tokens = call.estimate() * 3
        if tokens > WINDOW:
            overflow = ContextOverflow(tokens, WINDOW)
            return ModelFailed("too long", "context_length_exceeded", overflow=overflow)
        return writes("the summary" if is_summary(call) else "three")

    model = PlainModel(counts_more)
    await turn(model)
    assert [str(item["content"])[:8] for item in model.calls[-1].items] == ["[Summary", "third"]
    refused = [call for call in model.calls if is_summary(call) and call.estimate() * 3 > WINDOW]
    assert len(refused) == 1
