"""What is read from the log of a turn that goes on."""

from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from gateway_app.agent.events import RoundFinished, TurnFinished, Usage
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.tools import ToolCall, ToolResult
from gateway_app.runtime.resumption import ResumedTurn, read_progress
from responses_app.models import ToolEvent
from responses_app.models.tool_events import ToolStatus
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import ATTEMPT_STARTED, MODEL_FINISHED, MODEL_STARTED, TOOL_CALLED, Event
from responses_app.protocol.items import Item
from tests.support.output_builders import RESPONSE_ID, created_event
from tests.support.providers import CALL

ROUND: Event = {"type": MODEL_FINISHED, "reason": "tool_calls", "message": "", "usage": asdict(Usage(1, 60))}


def resumed(say: Callable[[OutputBuilder], None], ledger: dict[str, ToolEvent] | None = None) -> ResumedTurn:
    """As after a crash behind the output."""
    first = OutputBuilder(RESPONSE_ID, [created_event()])
    say(first)
    log = [created_event(), *first.take()]
    second = OutputBuilder(RESPONSE_ID, log)
    second.close("incomplete")
    return read_progress(log, second, ledger or {})


def test_a_call_of_another_server_is_not_ours_to_run() -> None:
    item: Item = {
        "type": "mcp_call",
        "server_label": "elsewhere",
        "name": "look",
        "arguments": "{}",
        "status": "in_progress",
    }
    progress = resumed(lambda builder: builder.opaque(item))
    assert progress.pending == ()
    assert [item["type"] for item in progress.items] == ["mcp_call"]


@pytest.mark.parametrize("ends", [True, False])
def test_outputs_come_behind_the_text_beside_their_calls(ends: bool) -> None:
    """Also where no item of its own shows when a call was answered."""

    def say(builder: OutputBuilder) -> None:
        builder.mcp_call_started("c1", "hermes", "look")
        builder.call_finished("c1")
        builder.add({"type": TOOL_CALLED, "call_id": "c1", "name": "look", "output_index": 0})
        builder.add({"type": TOOL_CALLED, "call_id": "c2", "name": "_look", "output_index": None, "arguments": "{}"})
        builder.text("Both.")
        builder.add(ROUND if ends else {"type": ATTEMPT_STARTED, "attempt": 2})
        builder.close("completed")
        builder.tool_output("c1", "seen")
        builder.text("Well")

    progress = resumed(say, {"c2": ToolEvent(call_id="c2", status=ToolStatus.COMPLETED, output="seen")})
    call, output = "function_call", "function_call_output"
    assert [item["type"] for item in progress.items] == [call, call, "message", output, output, "message"]
    assert progress.is_message_cut


def say_of_every_kind(builder: OutputBuilder) -> None:
    for say in (builder.reasoning, builder.refusal, builder.text):
        say("x" * 40)
    builder.reasoning("x" * 40, "summary")
    for call_id, kind in (("c1", "function_call"), ("c2", "custom_tool_call")):
        builder.call_started(call_id, "look", kind)
        builder.call_arguments(call_id, "x" * 40)
    builder.mcp_call_started("c3", "hermes", "look")
    builder.call_arguments("c3", "x" * 40)


def test_whatever_was_written_before_a_crash_counts_against_the_limit() -> None:
    assert resumed(say_of_every_kind).usage == Usage(0, 7 * 10, is_estimated=True)


def test_the_input_of_an_answer_that_broke_off_counts_and_is_an_estimate() -> None:
    def say(builder: OutputBuilder) -> None:
        builder.add({"type": MODEL_STARTED, "input_tokens": 100})
        builder.text("x" * 40)
        builder.close("incomplete")
        builder.add({"type": ATTEMPT_STARTED, "attempt": 2})
        builder.add({"type": MODEL_STARTED, "input_tokens": 110})
        builder.text("y" * 400)
        builder.add(ROUND)
        builder.close("completed")
        builder.add({"type": MODEL_STARTED, "input_tokens": 200})
        builder.text("z" * 80)

    assert resumed(say).usage == Usage(100 + 1 + 200, 10 + 60 + 20, is_estimated=True)


def test_usage_of_a_log_of_another_version_is_read() -> None:
    """Before the estimate had a name, or with a count that only a later version knows."""

    def say(builder: OutputBuilder) -> None:
        builder.text("x")
        builder.add(ROUND | {"usage": {"input_tokens": 3, "output_tokens": 4, "audio_tokens": 5}})
        builder.close("completed")

    assert resumed(say).usage == Usage(3, 4)


def test_what_a_usage_reports_is_not_counted_again() -> None:
    def say(builder: OutputBuilder) -> None:
        say_of_every_kind(builder)
        builder.add(ROUND)
        builder.close("completed")
        builder.tool_output("c1", "y" * 40)

    assert resumed(say).usage == Usage(1, 60)


def test_the_words_of_a_user_in_a_compaction_are_no_answer() -> None:
    asked: Item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 40}]}
    progress = resumed(lambda builder: builder.opaque(asked))
    assert (progress.usage, progress.is_message_cut) == (Usage(), False)


async def test_calls_that_were_not_carried_out_end_the_turn_also_in_the_next_attempt() -> None:
    """The process died between their outputs and the end."""

    async def run_tool(call: ToolCall) -> ToolResult:
        raise AssertionError(call)

    progress = TurnProgress(tool_calls=2, rounds=1, last_round=RoundFinished("tool_calls", Usage()))
    events = [event async for event in run_turn([], replace(CALL, max_tool_calls=1), run_tool, progress, retries=0)]
    assert events == [TurnFinished(Usage(), "max_tool_calls")]
