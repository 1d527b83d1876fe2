"""The built-in model: deterministic, offline, and it does what docs/builtin.md says."""

from pathlib import Path
from typing import Any

from gateway_app.agent.events import TextDelta
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import ToolContext
from gateway_app.providers.builtin.provider import BuiltinProvider, compose
from gateway_app.providers.builtin.script import (
    Call,
    Fail,
    Say,
    Think,
)
from gateway_app.tools import builtin_tools
from responses_app.protocol.items import Item

CALCULATE = builtin_tools("off")["calculate"]


def ask(text: str, **fields: Any) -> ModelCall:
    item: Item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return ModelCall("m", [item], **fields)


async def answer(text: str) -> str:
    return "".join([e.text async for e in BuiltinProvider().stream(ask(text)) if isinstance(e, TextDelta)])


async def test_the_same_question_has_the_same_answer() -> None:
    assert await answer("hello") == await answer("hello")
    assert '"hello"' in await answer("hello")


async def test_it_writes_exactly_as_many_words_as_asked() -> None:
    for count in (1, 37, 1234):
        assert len((await answer(f"Write {count} words")).split()) == count


def test_pace_thought_failure_and_tools_are_asked_for_in_words() -> None:
    [slow] = compose(ask("write 3 words slowly"))
    assert isinstance(slow, Say)
    assert slow.words_per_sec == 10
    [paced] = compose(ask("write 3 words at 250 words per second"))
    assert isinstance(paced, Say)
    assert paced.words_per_sec == 250
    assert isinstance(compose(ask("think first"))[0], Think)
    assert isinstance(compose(ask("think first", parameters={"reasoning": {"effort": "low"}}))[0], Think)
    unthinking = compose(ask("think first", parameters={"reasoning": {"effort": "none"}}))
    assert not any(isinstance(step, Think) for step in unthinking)
    assert isinstance(compose(ask("please fail"))[-1], Fail)
    call = compose(ask("calculate 2 * (3 + 4)", tools=(CALCULATE,)))[-1]
    assert isinstance(call, Call)
    assert call.arguments == {"expression": "2 * (3 + 4)"}


async def test_calculate_does_sums_and_nothing_else() -> None:
    run, context = CALCULATE.run, ToolContext(Path(), report=print)
    assert await run({"expression": "-2 * (3 + 4) / 8"}, context) == "-1.75"
    for bad in ("__import__('os')", "2**9999", "x", "", "(" * 400):
        try:
            await run({"expression": bad}, context)
        except (ValueError, SyntaxError, MemoryError):
            continue
        raise AssertionError(bad)
