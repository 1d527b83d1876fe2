"""Calls that were cut: never run, reported to the model, and not for ever."""

from dataclasses import replace

import pytest

from gateway_app.agent.events import (
    AgentEvent,
    CallStarted,
    ToolFinished,
    TurnFinished,
)
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.tools import ToolCall, ToolResult
from tests.support.model_stub import (
    Begun,
    Call,
    Calls,
    Cut,
    Finish,
    Raw,
    Step,
    Text,
    sse,
)
from tests.support.providers import CALL, Providers, record_round

WRITE = Begun(Call("c1", "write_file", ('{"text": "lo',)))
PATCH = Begun(Call("c1", "patch", ('{"text": "lo',)))
WHOLE = Call("c0", "look", ('{"at": 1}',))
DONE = Calls((Call("c1", "write_file", ('{"text": "x"}',)),))
DROPS: dict[str, Step] = {"cut": Cut(), "length": Finish("length")}
SPLIT = "do not send the same call again"


@pytest.fixture(params=DROPS)
def drop(request: pytest.FixtureRequest) -> Step:
    return DROPS[str(request.param)]


async def run(providers: Providers, mode: str, ran: list[ToolCall]) -> list[AgentEvent]:
    async def run_tool(call: ToolCall) -> ToolResult:
        ran.append(call)
        return ToolResult("done")

    return [event async for event in run_turn([providers.provider(mode)], CALL, run_tool, TurnProgress(), retries=2)]


async def test_after_the_second_drop_of_a_tool_the_model_is_asked_to_split(
    providers: Providers, mode: str, drop: Step
) -> None:
    for step in (WRITE, WRITE, DONE):
        providers.stub.play(step, Finish("tool_calls") if step is DONE else drop)
    recorded = await record_round(providers.provider(mode))
    assert recorded.calls == [("write_file", '{"text": "x"}')]
    assert "`write_file` was cut off" in providers.shown(1)
    assert SPLIT not in providers.shown(1)
    for word in ("`write_file`", SPLIT, "Split the content", "`patch`", "8,000 tokens"):
        assert word in providers.shown(2)


async def test_drops_of_different_tools_are_not_in_a_row(providers: Providers, mode: str, drop: Step) -> None:
    for step in (WRITE, PATCH, WRITE):
        providers.stub.play(step, drop)
    recorded = await record_round(providers.provider(mode))
    assert recorded.text == "Hello wörld 🎉"
    assert SPLIT not in providers.shown(3)


async def test_four_drops_end_the_turn_with_a_message(providers: Providers, mode: str, drop: Step) -> None:
    for _ in range(9):
        providers.stub.play(WRITE, drop)
    ran: list[ToolCall] = []
    end = (await run(providers, mode, ran))[-1]
    assert isinstance(end, TurnFinished)
    assert end.incomplete_reason == "tool_call_dropped"
    assert "write_file" in end.message
    assert (providers.requests, ran) == (4, [])


async def test_a_good_tool_round_resets_the_count(providers: Providers, mode: str, drop: Step) -> None:
    for _ in range(3):
        for step in (WRITE, WRITE, WRITE, DONE):
            providers.stub.play(step, Finish("tool_calls") if step is DONE else drop)
    ran: list[ToolCall] = []
    end = (await run(providers, mode, ran))[-1]
    assert isinstance(end, TurnFinished)
    assert (end.incomplete_reason, len(ran)) == (None, 3)
    assert len({call.call_id for call in ran}) == 3
    assert SPLIT not in providers.shown(1).split("`write_file` was cut off")[1]


async def test_a_limit_of_the_client_stays_its_limit(providers: Providers, mode: str) -> None:
    providers.stub.play(WRITE, Finish("length"))
    recorded = await record_round(providers.provider(mode), call=replace(CALL, max_output_tokens=50))
    assert (recorded.finish.reason, recorded.calls, providers.requests) == ("length", [], 1)


async def test_the_calls_before_a_cut_one_are_kept_and_run(providers: Providers, mode: str, drop: Step) -> None:
    providers.stub.play(Calls((WHOLE,)), WRITE, drop)
    providers.stub.play(DONE, Finish("tool_calls"))
    ran: list[ToolCall] = []
    events = await run(providers, mode, ran)
    assert [(call.name, call.arguments) for call in ran] == [("look", '{"at": 1}'), ("write_file", '{"text": "x"}')]
    assert ToolFinished(ran[0].call_id, "done") in events
    assert "`write_file` was cut off" in providers.shown(1)
    assert "lo" not in providers.shown(1).replace("look", "")
    started = [event.call_id for event in events if isinstance(event, CallStarted)]
    assert len(set(started)) == 3  # the stub uses one id again
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].incomplete_reason is None


async def test_a_cut_right_after_a_whole_call_runs_it(providers: Providers, mode: str, drop: Step) -> None:
    providers.stub.play(Begun(WHOLE), drop)
    recorded = await record_round(providers.provider(mode))
    assert (recorded.calls, recorded.finish.reason, recorded.finish.notes) == (
        [("look", '{"at": 1}')],
        "tool_calls",
        (),
    )


async def test_the_text_before_a_dropped_call_is_not_sent_again(providers: Providers, mode: str, drop: Step) -> None:
    providers.stub.play(Text("I write it. "), WRITE, drop)
    providers.stub.play(Text("Now."), Finish())
    recorded = await record_round(providers.provider(mode))
    assert recorded.text == "I write it. Now."
    assert "I write it. " in providers.shown(1)


async def test_a_call_that_never_gets_a_name_is_a_broken_answer(providers: Providers) -> None:
    nameless = {"index": 0, "id": "x", "function": {"arguments": "{}"}}
    broken = Raw(sse({"choices": [{"index": 0, "delta": {"tool_calls": [nameless]}, "finish_reason": "tool_calls"}]}))
    providers.stub.play(broken)
    assert (await record_round(providers.provider("chat_completions"))).text == "Hello wörld 🎉"
    item = {"type": "function_call", "id": "x", "call_id": "x", "arguments": "{}"}
    added = {"type": "response.output_item.done", "output_index": 0, "item": item}
    providers.stub.play(Raw(sse(added)), Finish())
    assert (await record_round(providers.provider("codex_responses"))).text == "Hello wörld 🎉"
    assert providers.requests == 4
