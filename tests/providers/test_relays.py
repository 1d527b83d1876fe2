"""Servers that bend the protocols, and those that do not stream: what is put up with, and what is not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import (
    CallArguments,
    CallStarted,
    ModelFailed,
    ReasoningDelta,
    TextDelta,
)
from tests.support.model_stub import (
    Answer,
    Call,
    Calls,
    Cut,
    Finish,
    Raw,
    Refusal,
    Step,
    StreamStyle,
    Text,
    Thought,
    sse,
)
from tests.support.providers import (
    CALL,
    COUNTED,
    Providers,
    RecordedRound,
    record_round,
)

CODEX = "codex_responses"
OPENINGS: dict[str, dict[str, Any]] = {
    "in progress": {"type": "response.in_progress", "response": {"id": "r", "usage": {"input_tokens": 3}}},
    "a vendor's event": {"type": "codex.rate_limits", "plan_type": "plus"},
}
TALK: tuple[Step, ...] = (
    Thought("Hm. "),
    Text("Well. "),
    Calls((Call("c1", "look", ('{"at"', ": 1}")),)),
    Finish("tool_calls"),
)


def event(kind: str, **fields: Any) -> Raw:
    return Raw(sse({"type": f"response.{kind}", **fields}))


# -- relays without response.created ----------------------------------------------------
@pytest.mark.parametrize("opening", OPENINGS)
async def test_a_relay_without_the_first_event_just_works(providers: Providers, opening: str) -> None:
    providers.stub.play(StreamStyle(has_opening=False, has_output=False), Raw(sse(OPENINGS[opening])), *TALK)
    recorded = await record_round(providers.provider(CODEX))
    assert (recorded.thought, recorded.text, recorded.calls) == ("Hm. ", "Well. ", [("look", '{"at": 1}')])
    assert recorded.deviations == [f"no response.created before {OPENINGS[opening]['type']}"]
    assert (providers.requests, recorded.cuts) == (1, 0)
    assert (recorded.finish.reason, recorded.finish.usage) == ("tool_calls", COUNTED)
    deltas = [type(e) for e in recorded.events if isinstance(e, ReasoningDelta | TextDelta | CallArguments)]
    assert deltas == [ReasoningDelta, TextDelta, CallArguments, CallArguments]


@pytest.mark.parametrize("opening", OPENINGS)
async def test_the_same_from_openai_is_an_error_and_not_asked_again(providers: Providers, opening: str) -> None:
    first = OPENINGS[opening]
    providers.stub.play(StreamStyle(has_opening=False), Raw(sse(first)), *TALK)
    with pytest.raises(ModelFailed, match=f"expected response.created before {first['type']}"):
        await record_round(providers.provider(CODEX, name="openai"))
    assert providers.requests == 1
    providers.stub.play(*TALK)
    assert (await record_round(providers.provider(CODEX, name="openai"))).deviations == []


CALLED = {"type": "function_call", "id": "f", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
TEXT_ITEM = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Well. "}]}
EMPTY = event("completed", response={"output": None, "usage": None})
ANNOUNCED = event("output_item.added", output_index=1, item={**CALLED, "arguments": ""})
ARGUED = event("function_call_arguments.delta", output_index=1, delta='{"at": 1}')
REBUILT: dict[str, tuple[Step, ...]] = {
    "items": (event("output_item.done", item=TEXT_ITEM), event("output_item.done", item=CALLED), EMPTY),
    "announced calls": (event("output_text.delta", output_index=0, delta="Well. "), ANNOUNCED, ARGUED, EMPTY),
    "the terminal event": (event("completed", response={"output": [TEXT_ITEM, CALLED]}),),
    "text and a last call": (
        event("output_text.delta", item_id="m", delta="Well. "),
        event("completed", response={"output": [TEXT_ITEM, CALLED]}),
    ),
    "an announced call and its end": (
        event("output_text.delta", output_index=0, delta="Well. "),
        ANNOUNCED,
        event("completed", response={"output": [TEXT_ITEM, CALLED]}),
    ),
    "ids that change, without an index": (
        event("output_item.added", item={**TEXT_ITEM, "content": []}),
        event("output_text.delta", item_id="m2", delta="Well. "),
        event("output_item.done", item={**TEXT_ITEM, "id": "m3"}),
        event("output_item.added", item={**CALLED, "arguments": "", "id": "f1"}),
        event("function_call_arguments.delta", item_id="f2", delta='{"at": 1}'),
        event("output_item.done", item={**CALLED, "id": "f3"}),
        EMPTY,
    ),
    "one index for all": (
        event("reasoning_summary_text.delta", output_index=0, delta="Hm. "),
        event("output_item.done", output_index=0, item=TEXT_ITEM),
        event("output_item.added", output_index=0, item={**CALLED, "arguments": ""}),
        event("function_call_arguments.delta", output_index=0, delta='{"at": 1}'),
        event("output_item.done", output_index=0, item=CALLED),
        EMPTY,
    ),
}


@pytest.mark.parametrize("source", REBUILT)
async def test_the_output_is_put_together_from_what_there_is(providers: Providers, source: str) -> None:
    providers.stub.play(Raw(sse(OPENINGS["in progress"])), *REBUILT[source])
    recorded = await record_round(providers.provider(CODEX))
    assert (recorded.text, recorded.calls) == ("Well. ", [("look", '{"at": 1}')])
    assert (providers.requests, recorded.finish.reason) == (1, "tool_calls")


async def test_two_calls_with_one_index_stay_two(providers: Providers) -> None:
    calls = [{**CALLED, "call_id": call_id, "arguments": "{}"} for call_id in ("c1", "c2")]
    steps = [event("output_item.done", output_index=0, item=call) for call in calls]
    providers.stub.play(event("created", response={}), *steps, EMPTY)
    assert (await record_round(providers.provider(CODEX))).calls == [("look", "{}"), ("look", "{}")]


def _twin(kind: str, index: int, at: int, **fields: Any) -> Raw:
    return event(kind, output_index=index, **fields, item={**CALLED, "id": f"f{at}", "arguments": f'{{"at": {at}}}'})


TWINS: dict[str, tuple[Step, ...]] = {
    "side by side": (
        *(event("output_item.added", output_index=at, item={**CALLED, "arguments": ""}) for at in (1, 2)),
        *(event("function_call_arguments.delta", output_index=at, delta=f'{{"at": {at}}}') for at in (2, 1)),
        *(_twin("output_item.done", at, at) for at in (1, 2)),
    ),
    "one after the other": tuple(
        step
        for at in (1, 2)
        for step in (
            event("output_item.added", output_index=at, item={**CALLED, "arguments": ""}),
            _twin("output_item.done", at, at),
        )
    ),
    "with one index": tuple(
        step
        for at in (1, 2)
        for step in (
            event("output_item.added", output_index=0, item={**CALLED, "arguments": ""}),
            _twin("output_item.done", 0, at),
        )
    ),
    "without announcement": tuple(_twin("output_item.done", at, at) for at in (1, 2)),
    "not streamed": (
        event("completed", response={"output": [{**CALLED, "arguments": f'{{"at": {at}}}'} for at in (1, 2)]}),
    ),
}


@pytest.mark.parametrize("way", TWINS)
async def test_two_calls_with_one_call_id_stay_two(providers: Providers, way: str) -> None:
    providers.stub.play(event("created", response={}), *TWINS[way], EMPTY)
    recorded = await record_round(providers.provider(CODEX))
    assert sorted(recorded.calls) == [("look", '{"at": 1}'), ("look", '{"at": 2}')]
    started = [given.call_id for given in recorded.events if isinstance(given, CallStarted)]
    assert len(set(started)) == 2


# -- answers without an end -------------------------------------------------------------
async def test_an_answer_without_an_end_is_whole_with_its_usage(providers: Providers, mode: str) -> None:
    marks = {
        "chat_completions": Raw(sse({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})),
        CODEX: Raw(sse({"type": "vendor.usage", "usage": {"input_tokens": 3, "output_tokens": 1}})),
    }
    providers.stub.play(Text("so"), marks[mode])
    recorded = await record_round(providers.provider(mode))
    assert (recorded.text, recorded.cuts, providers.requests) == ("so", 0, 1)
    assert recorded.finish.usage.input_tokens == 3
    assert recorded.deviations == ["no end of the answer"]
    providers.stub.play(StreamStyle(), marks[mode])  # usage, but no output
    assert (await record_round(providers.provider(mode))).text == "Hello wörld 🎉"
    assert providers.requests == 3


async def test_items_that_are_done_and_a_clean_end_are_a_whole_answer(providers: Providers) -> None:
    steps = (event("created", response={}), event("output_item.done", output_index=0, item=TEXT_ITEM))
    providers.stub.play(*steps)
    assert (await record_round(providers.provider(CODEX))).deviations == ["no end of the answer"]
    providers.stub.play(*steps, Cut())
    assert (await record_round(providers.provider(CODEX))).cuts == 1


async def test_usage_with_every_chunk_is_no_end(providers: Providers) -> None:
    counting = {"choices": [{"index": 0, "delta": {"content": "so "}}], "usage": {"prompt_tokens": 3}}
    providers.stub.play(Raw(sse(counting)))
    recorded = await record_round(providers.provider("chat_completions"))
    assert (recorded.text, recorded.cuts) == ("so Hello wörld 🎉", 1)


# -- servers that do not stream ---------------------------------------------------------
FULL: tuple[Step, ...] = (Thought("Hm. "), *TALK[1:])


def check_whole(recorded: RecordedRound) -> None:
    assert (recorded.thought, recorded.text, recorded.calls) == ("Hm. ", "Well. ", [("look", '{"at": 1}')])
    assert (recorded.finish.reason, recorded.finish.usage) == ("tool_calls", COUNTED)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model does not support streaming."),
        (422, "stream: true is not supported"),
        (400, "Unsupported value: 'stream' does not support true with this model."),
        (400, "Your organization must be verified to stream this model."),
        (501, "Streaming is not implemented."),
    ],
)
async def test_a_server_that_cannot_stream_is_asked_for_the_whole(
    providers: Providers, mode: str, status: int, message: str
) -> None:
    provider = providers.provider(mode)
    providers.stub.play(Answer(status, json.dumps({"error": {"message": message}}).encode()))
    providers.stub.play(*FULL)
    recorded = await record_round(provider, retries=0)
    check_whole(recorded)
    assert "no streaming" in recorded.deviations
    assert [asked.body["stream"] for asked in providers.stub.asked] == [True, False]
    assert "stream_options" not in providers.stub.asked[1].body
    assert (await record_round(provider)).text == "Hello wörld 🎉"
    assert providers.stub.asked[2].body["stream"] is True


async def test_another_refusal_is_not_answered_without_streaming(providers: Providers, mode: str) -> None:
    providers.stub.play(Answer(400, b'{"error": {"message": "The stream of thought is too short."}}'))
    with pytest.raises(ModelFailed):
        await record_round(providers.provider(mode))
    assert providers.requests == 1


async def test_options_of_the_stream_that_are_refused_are_left_out(providers: Providers, mode: str) -> None:
    call = replace(CALL, extras={"stream_options": {"include_obfuscation": False}})
    for status in (400, 422):
        providers.stub.play(Answer(status, b'{"error": {"message": "Unknown field: stream_options"}}'))
        recorded = await record_round(providers.provider(mode), call=call, retries=0)
        assert recorded.text == "Hello wörld 🎉"
        first, second = providers.stub.asked[-2:]
        assert "stream_options" in first.body
        assert "stream_options" not in second.body
        assert second.body["stream"] is True
    for _ in range(2):
        providers.stub.play(Answer(400, b'{"error": {"message": "Unknown field: stream_options"}}'))
    with pytest.raises(ModelFailed, match="stream_options"):
        await record_round(providers.provider(mode), call=call)
    assert providers.requests == 6


async def test_a_whole_answer_to_a_streamed_request_is_taken_from_custom_servers(
    providers: Providers, mode: str
) -> None:
    providers.stub.play(*FULL)
    await record_round(providers.provider(mode))
    whole = providers.stub.whole(mode, FULL)
    providers.stub.play(Answer(200, whole))
    recorded = await record_round(providers.provider(mode))
    check_whole(recorded)
    assert recorded.deviations == ["a whole answer"]
    providers.stub.play(Answer(200, whole))
    with pytest.raises(ModelFailed, match="stream of events"):
        await record_round(providers.provider(mode, name="openai"))
    providers.stub.play(Answer(200, providers.stub.whole(mode, (Refusal("No."), Finish()))))
    assert (await record_round(providers.provider(mode))).answer.items()[0]["content"] == [
        {"type": "output_text", "text": "No."}
    ]


# -- content in other shapes ------------------------------------------------------------
async def test_chat_content_in_parts_is_read(providers: Providers) -> None:
    parts = [{"type": "text", "text": "so "}, {"type": "text", "text": "far"}, {"type": "image"}]
    providers.stub.play(Raw(sse({"choices": [{"index": 0, "delta": {"content": parts}}]})), Finish())
    assert (await record_round(providers.provider("chat_completions"))).text == "so far"
