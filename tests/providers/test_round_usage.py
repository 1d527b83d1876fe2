"""The usage of a round and its limit, over every request that it took."""

from dataclasses import replace
from typing import Any

from gateway_app.agent.events import (
    TurnFinished,
    Usage,
)
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.tools import ToolCall, ToolResult
from tests.support.model_stub import (
    Answer,
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
from tests.support.providers import (
    CALL,
    COUNTED,
    Providers,
    failed_round,
    record_round,
)

BUSY = Answer(503, b'{"error": {"message": "Busy."}}')
WRITE = Begun(Call("c1", "write_file", ('{"text": "lo',)))


async def test_usage_is_summed_over_every_request_that_reported_it(providers: Providers, mode: str) -> None:
    cut_with_usage: Step = Raw(sse({"choices": [{"index": 0, "delta": {}}], "usage": {"prompt_tokens": 100}}))
    if mode == "codex_responses":
        failed = {"error": {"code": "server_error"}, "usage": {"input_tokens": 100}}
        cut_with_usage = Raw(sse({"type": "response.failed", "response": failed}))
    providers.stub.play(Text("a"), cut_with_usage, Cut())
    providers.stub.play(WRITE, Finish("length"))
    providers.stub.play(BUSY)
    providers.stub.play(Text("b"), Finish())
    recorded = await record_round(providers.provider(mode))
    assert recorded.finish.usage == Usage(100, 1, is_estimated=True) + COUNTED + COUNTED
    providers.stub.play(Text("a"), cut_with_usage, Cut())
    providers.stub.play(Answer(400, b"{}"))
    assert (await failed_round(providers, mode)).usage == Usage(100, 1, is_estimated=True)


def limits_of(providers: Providers) -> list[Any]:
    return [asked.body.get("max_tokens", asked.body.get("max_output_tokens")) for asked in providers.stub.asked]


async def test_a_limit_is_one_for_all_rounds_cuts_and_attempts(providers: Providers, mode: str) -> None:
    async def run_tool(call: ToolCall) -> ToolResult:
        return ToolResult("done")

    limited = replace(CALL, max_output_tokens=20)
    providers.stub.play(Text("a" * 20), Cut())
    providers.stub.play(Calls((Call("c1", "look", ("{}",)),)), Finish("tool_calls"))
    models, progress = [providers.provider(mode)], TurnProgress(usage=Usage(0, 4))
    last = [event async for event in run_turn(models, limited, run_tool, progress, retries=2)][-1]
    assert isinstance(last, TurnFinished)
    assert limits_of(providers) == [16, 11, 4]
    spent = run_turn(models, limited, run_tool, TurnProgress(usage=Usage(0, 20)), retries=2)
    assert [event async for event in spent] == [TurnFinished(Usage(0, 20), "max_output_tokens")]
    assert providers.requests == 3


async def test_a_limit_counts_the_output_before_a_cut(providers: Providers, mode: str) -> None:
    limited = replace(CALL, max_output_tokens=20)
    providers.stub.play(Text("a" * 40), Cut())
    assert (await record_round(providers.provider(mode), call=limited)).finish.reason == "stop"
    assert limits_of(providers) == [20, 10]
    providers.stub.play(Text("a" * 80), Cut())
    recorded = await record_round(providers.provider(mode), call=limited)
    assert (recorded.finish.reason, providers.requests) == ("length", 3)
    assert recorded.finish.usage == Usage(CALL.input_tokens(), 20, is_estimated=True)
