"""Turns that would not end by themselves, and those that end with nothing."""

from dataclasses import replace

import pytest

from gateway_app.agent.events import ModelFinished, RoundFinished, ToolFinished, TurnFinished, Usage
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.repeats import Repeats
from gateway_app.agent.tools import ToolCall, ToolResult
from gateway_app.agent.turn_limits import EMPTY, LAST_ROUND
from responses_app.protocol.items import Item
from tests.support.plain_models import LOOK, PlainModel, asks_for, writes

CALL = ModelCall("m", [{"type": "message", "role": "user", "content": "find it"}], tools=(LOOK,))


async def nothing_new(call: ToolCall) -> ToolResult:
    return ToolResult("Error: not found.", is_error=True)


class Counting:
    """Every result is another one."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self, call: ToolCall) -> ToolResult:
        self.count += 1
        return ToolResult(f"result {self.count}")


async def turn(model: PlainModel, call: ModelCall = CALL, progress: TurnProgress | None = None) -> TurnFinished:
    model.events = [e async for e in run_turn([model], call, nothing_new, progress or TurnProgress(), retries=0)]
    last = model.events[-1]
    assert isinstance(last, TurnFinished)
    return last


async def test_a_repeated_call_is_pointed_out_and_then_ends_the_turn_in_words() -> None:
    model = PlainModel(lambda call: asks_for("look") if call.tools else writes("It is not there."))
    end = await turn(model)
    outputs = [event.output for event in model.events if isinstance(event, ToolFinished)]
    assert len(outputs) == 5
    assert ["same result" in output for output in outputs] == [False, False, True, True, True]
    assert "3 times" in outputs[2]
    assert (end.incomplete_reason, "repeating" in end.message) == ("max_iterations", True)
    assert len(model.calls) == 6
    assert model.calls[-1].items[-1]["content"] == LAST_ROUND


async def test_a_call_that_is_made_in_spite_of_it_is_not_run() -> None:
    model = PlainModel(lambda call: asks_for("look"))
    end = await turn(model)
    outputs = [event.output for event in model.events if isinstance(event, ToolFinished)]
    assert len(outputs) == 6
    assert outputs[-1].startswith("Not carried out")
    assert end.incomplete_reason == "max_iterations"


async def test_the_same_result_after_something_new_is_no_repetition() -> None:
    repeats = Repeats()
    test, change = ToolCall("1", "terminal", "make test"), ToolCall("2", "patch", "")
    for number in range(10):
        assert repeats.noted(test, "1 failed") == "1 failed"
        repeats.noted(replace(change, arguments=str(number)), "done")
    assert not repeats.must_stop


async def test_two_calls_that_alternate_are_a_loop_too() -> None:
    repeats = Repeats()
    for _ in range(5):
        repeats.noted(ToolCall("1", "a", ""), "x")
        repeats.noted(ToolCall("2", "b", ""), "y")
    assert repeats.must_stop


async def test_repetitions_of_earlier_attempts_count() -> None:
    items: list[Item] = []
    for number in range(4):
        call_id = f"c{number}"
        items.append({"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"})
        output = Repeats(items[:-1]).noted(ToolCall(call_id, "look", "{}"), "Error: not found.")
        items.append({"type": "function_call_output", "call_id": call_id, "output": output})
    progress = TurnProgress(items=tuple(items), rounds=4, tool_calls=4)
    model = PlainModel(lambda call: asks_for("look") if call.tools else writes("No."))
    end = await turn(model, replace(CALL, items=CALL.items + items), progress)
    assert (len(model.calls), end.incomplete_reason) == (2, "max_iterations")


@pytest.mark.parametrize("done", [0, 2])
async def test_the_last_allowed_round_has_no_tools(done: int) -> None:
    model = PlainModel(lambda call: asks_for("look") if call.tools else writes("So far: nothing."))
    tools = Counting()
    call = replace(CALL, max_iterations=4, tool_choice="required")
    progress = TurnProgress(rounds=done, tool_calls=done)
    events = [event async for event in run_turn([model], call, tools.run, progress, retries=0)]
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert (last.incomplete_reason, "4 rounds" in last.message) == ("max_iterations", True)
    assert len(model.calls) == 4 - done
    assert [bool(call.tools) for call in model.calls[-2:]] == [True, False]
    assert model.calls[-1].tool_choice == "auto"


async def test_one_round_is_a_whole_turn() -> None:
    model = PlainModel(lambda call: writes("Hello."))
    end = await turn(model, replace(CALL, max_iterations=1))
    assert (end.incomplete_reason, model.calls[0].tools) == (None, ())


async def test_an_empty_answer_after_tools_is_asked_for_once_more() -> None:
    script = [asks_for("look"), writes(""), writes("Here it is.")]
    model = PlainModel(lambda call: script[len(model.calls) - 1])
    end = await turn(model)
    assert (end.incomplete_reason, len(model.calls)) == (None, 3)
    assert model.calls[2].items[-1]["content"] == EMPTY


async def test_a_second_empty_answer_counts() -> None:
    model = PlainModel(lambda call: asks_for("look") if len(model.calls) == 1 else writes(""))
    end = await turn(model)
    assert (end.incomplete_reason, len(model.calls)) == (None, 3)


async def test_an_empty_answer_without_tools_is_one() -> None:
    model = PlainModel(lambda call: writes(""))
    await turn(model)
    assert len(model.calls) == 1


@pytest.mark.parametrize(("is_asked_again", "requests"), [(False, 1), (True, 0)])
async def test_an_empty_answer_of_an_earlier_attempt_is_asked_for_once(is_asked_again: bool, requests: int) -> None:
    model = PlainModel(lambda call: writes("There."))
    progress = TurnProgress(
        rounds=2,
        tool_calls=1,
        last_round=RoundFinished("stop", Usage()),
        is_answer_empty=True,
        is_asked_again=is_asked_again,
    )
    await turn(model, progress=progress)
    assert len(model.calls) == requests
    if requests:
        assert model.calls[0].items[-1]["content"] == EMPTY


def test_the_same_arguments_in_other_white_space_are_a_repetition() -> None:
    repeats = Repeats()
    for number in range(5):
        gap = " " * number
        repeats.noted(ToolCall("1", "look", f'{{"a":{gap}1,{gap}"b": 2}}'), "x")
    assert repeats.must_stop


async def test_an_answer_of_white_space_after_tools_is_empty() -> None:
    script = [asks_for("look"), writes(" \n"), writes("Here it is.")]
    model = PlainModel(lambda call: script[len(model.calls) - 1])
    await turn(model)
    assert len(model.calls) == 3


def test_the_double_counts_tokens() -> None:
    [*_, end] = writes("x")
    assert isinstance(end, ModelFinished)
