"""Calls in the text of a model whose server does not parse them."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import CallStarted, TextDelta
from gateway_app.agent.rounds import ask
from gateway_app.agent.tools import Tool, ToolContext
from tests.support.model_stub import Cut, Finish, Gate, Step, Text
from tests.support.providers import CALL, Providers, RecordedRound, record_round

PRESET = "llama-cpp-python"  # writes_calls_as_text


async def _never(arguments: dict[str, Any], context: ToolContext) -> str:
    raise AssertionError


OFFERED = replace(
    CALL,
    tools=(Tool("look", "", {}, _never),),
    client_tools=(
        {"type": "function", "name": "weather", "parameters": {}},
        {"type": "custom", "name": "apply_patch"},
    ),
)


def block(arguments: str = '{"at": 1}', name: str = "look") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


async def answered(providers: Providers, *steps: Step, preset: str = PRESET) -> RecordedRound:
    providers.stub.play(*steps, Finish())
    return await record_round(providers.provider("chat_completions", name=preset), call=OFFERED)


CALLED: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "a block alone": (block(), "", [("look", '{"at":1}')]),
    "behind text": (f"Let me see.\n{block()}\n", "Let me see.\n", [("look", '{"at":1}')]),
    "several": (f"{block()}\n{block(name='weather')} ", "", [("look", '{"at":1}'), ("weather", '{"at":1}')]),
    "behind a closed fence": (f"```py\nx\n```\n{block()}", "```py\nx\n```\n", [("look", '{"at":1}')]),
    "behind code in a line": (f"```x``` is it.\n{block()}", "```x``` is it.\n", [("look", '{"at":1}')]),
    "behind a block in the middle": (
        f"{block()} is what I write:\n{block(name='weather')}",
        f"{block()} is what I write:\n",
        [("weather", '{"at":1}')],
    ),
    "a closing tag in a string": (block('{"at": "\\"</tool_call>"}'), "", [("look", '{"at":"\\"</tool_call>"}')]),
    "a trailing comma": (block('{"at": 1,}'), "", [("look", '{"at":1}')]),
    "arguments as a string": (block('"{\\"at\\": 1}"'), "", [("look", '{"at": 1}')]),
    "no arguments": ('<tool_call>{"name": "look"}</tool_call>', "", [("look", "{}")]),
    "free text": (block('{"input": "*** Begin"}', "apply_patch"), "", [("apply_patch", "*** Begin")]),
    "a name with a namespace": (block(name="functions.look:0"), "", [("look", '{"at":1}')]),
}
TEXT = {
    "text behind it": f"{block()} That is it.",
    "in a fence": f"```\n{block()}\n```",
    "in a fence that stays open": f"```xml\n{block()}",
    "in a fence of tildes": f"~~~\n```\n{block()}",
    "in a longer fence": f"````\n```\n{block()}",
    "of a tool that is not offered": block(name="missing"),
    "an offered one before another": f"{block()}\n{block(name='missing')}",
    "no JSON": "<tool_call>look</tool_call>",
    "broken JSON": block('{"at": "x}'),
    "arguments of another type": block("[1]"),
    "no end": block().removesuffix("</tool_call>"),
    "half an end": block().removesuffix("call>"),
    "half a beginning": f"{block()}\n<tool_",
    "only the tag": "We use <tool_call>",
    "a comparison": "a <b and c< ",
}


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", CALLED)
async def test_blocks_at_the_end_are_calls(providers: Providers, name: str, size: int) -> None:
    text, kept, calls = CALLED[name]
    found = await answered(providers, *pieces(text, size))
    assert (found.text, found.calls, found.finish.reason) == (kept, calls, "tool_calls")


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", TEXT)
async def test_everything_else_stays_text(providers: Providers, name: str, size: int) -> None:
    found = await answered(providers, *pieces(TEXT[name], size))
    assert (found.text, found.calls, found.finish.reason) == (TEXT[name], [], "stop")


def pieces(text: str, size: int) -> list[Step]:
    return [Text(text[start : start + size]) for start in range(0, len(text), size)]


@pytest.mark.parametrize("preset", ["ollama", "openai", "custom"])
async def test_other_servers_parse_calls_themselves(providers: Providers, preset: str) -> None:
    found = await answered(providers, Text(block()), preset=preset)
    assert (found.text, found.calls) == (block(), [])


async def test_a_call_is_not_read_from_an_answer_that_was_cut(providers: Providers) -> None:
    providers.stub.play(Text(block()), Finish("length"))
    limited = replace(OFFERED, max_output_tokens=50)
    found = await record_round(providers.provider("chat_completions", name=PRESET), call=limited)
    assert (found.text, found.calls, found.finish.reason) == (block(), [], "length")
    providers.stub.play(Text(f"Well. {block()}"), Cut())
    providers.stub.play(Text(" Done."), Finish())
    found = await record_round(providers.provider("chat_completions", name=PRESET), call=OFFERED)
    assert (found.text, found.calls) == (f"Well. {block()} Done.", [])


async def test_nothing_is_held_that_can_not_be_a_block(providers: Providers) -> None:
    opened = threading.Event()
    providers.stub.play(Text("One <b>two</b>, "), Text("three.<tool_"), Gate(opened), Text("box>"), Finish())
    provider = providers.provider("chat_completions", name=PRESET)
    text = ""
    async for event in ask([provider], OFFERED, 0, AnswerBuffer()):
        if isinstance(event, TextDelta):
            text += event.text
        if text.endswith("three."):
            opened.set()  # the stub goes on only now
    assert text == "One <b>two</b>, three.<tool_box>"


async def test_a_tool_that_a_choice_leaves_out_is_not_offered(providers: Providers) -> None:
    for choice in (
        "none",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]},
    ):
        providers.stub.play(Text(block()), Finish())
        provider = providers.provider("chat_completions", name=PRESET)
        found = await record_round(provider, call=replace(OFFERED, tool_choice=choice))
        assert (found.text, found.calls) == (block(), [])


async def test_a_long_call_is_read_from_small_pieces(providers: Providers) -> None:
    arguments = '{"at": "' + 'say \\"hi\\" </tool_call>' * 3000 + '"}'
    found = await answered(providers, *pieces(block(arguments), 40))
    assert [name for name, _ in found.calls] == ["look"]
    assert [event.name for event in found.events if isinstance(event, CallStarted)] == ["look"]
