"""Tool calls as servers of Chat Completions really send them: which fragments are one call."""

from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import CallStarted
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import Tool, ToolContext
from responses_app.protocol.items import Item
from tests.support.model_stub import Finish, Raw, Text, sse
from tests.support.providers import CALL, Providers, RecordedRound, record_round

CHAT = "chat_completions"
PARIS, ROME = '{"city": "Paris"}', '{"city": "Rome"}'
BOTH = [("weather", PARIS), ("weather", ROME)]


def fragment(arguments: str | None = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    """Index and id are there only if the test gives them."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def chunk(*fragments: dict[str, Any], reason: str | None = None) -> Raw:
    choice = {"index": 0, "delta": {"tool_calls": list(fragments)}, "finish_reason": reason}
    return Raw(sse({"id": "chatcmpl-1", "choices": [choice]}))


# Each with its source; every one of them means the two calls of BOTH.
TWO_CALLS: dict[str, tuple[Raw, ...]] = {
    # OpenAI: the id and the name once, then arguments by index.
    "OpenAI": (
        chunk(fragment("", "weather", index=0, id="a")),
        chunk(fragment("", "weather", index=1, id="b")),
        chunk(fragment('{"city": ', index=0)),
        chunk(fragment(ROME, index=1)),
        chunk(fragment('"Paris"}', index=0)),
    ),
    # ollama#7881: whole calls without an index, before 0.4.7.
    "Ollama without an index": (
        chunk(fragment(PARIS, "weather", id="call_a1")),
        chunk(fragment(ROME, "weather", id="call_b2")),
    ),
    # ollama#15457: the index is always 0 in 0.20.
    "Ollama with one index": (
        chunk(fragment(PARIS, "weather", index=0, id="call_a1")),
        chunk(fragment(ROME, "weather", index=0, id="call_b2")),
    ),
    "Ollama with both in one chunk": (
        chunk(
            fragment(PARIS, "weather", index=0, id="call_a1"),
            fragment(ROME, "weather", index=0, id="call_b2"),
        ),
    ),
    # open-webui/computer#224: no index, arguments in pieces, and a signature alone.
    "Gemini": (
        chunk(fragment('{"city": ', "weather", id="function-call-1")),
        chunk(fragment('"Paris"}')),
        chunk({"extra_content": {"google": {"thought_signature": "s"}}}),
        chunk(fragment('{"city": ', "weather", id="function-call-2")),
        chunk(fragment('"Rome"}')),
    ),
    "Gemini with empty ids": (
        chunk(fragment(PARIS, "weather", id="")),
        chunk(fragment(ROME, "weather", id="")),
    ),
    # sglang serving_chat.py: id and name are null in later deltas.
    "SGLang": (
        chunk(fragment("", "weather", index=0, id="functions.weather:0")),
        chunk(fragment(PARIS, None, index=0, id=None)),
        chunk(fragment("", "weather", index=1, id="functions.weather:1")),
        chunk(fragment(ROME, None, index=1, id=None)),
    ),
    "ids in every fragment, in turn, and one index": (
        chunk(fragment('{"city": ', "weather", index=0, id="a")),
        chunk(fragment('{"city": ', "weather", index=0, id="b")),
        chunk(fragment('"Paris"}', "weather", index=0, id="a")),
        chunk(fragment('"Rome"}', index=0, id="b")),
    ),
    "ids in every fragment, and no index": (
        chunk(fragment('{"city": ', "weather", id="a"), fragment('{"city": ', "weather", id="b")),
        chunk(fragment('"Paris"}', id="a"), fragment('"Rome"}', id="b")),
    ),
    "a new id on a used index, and its name later": (
        chunk(fragment(PARIS, "weather", index=0, id="a")),
        chunk(fragment("", index=0, id="b")),
        chunk(fragment(ROME, "weather", index=0, id="b")),
    ),
    # Older vLLM made an id for every delta.
    "an id of its own for every fragment": (
        chunk(fragment('{"city": ', "weather", index=0, id="x1")),
        chunk(fragment('"Paris"}', index=0, id="x2")),
        chunk(fragment('{"city": ', "weather", index=1, id="x3")),
        chunk(fragment('"Rome"}', index=1, id="x4")),
    ),
    "one id for all calls": (
        chunk(fragment(PARIS, "weather", index=0, id="call")),
        chunk(fragment(ROME, "weather", index=1, id="call")),
    ),
    "one id and one index for all calls": (
        chunk(fragment(PARIS, "weather", index=0, id="call")),
        chunk(fragment(ROME, "weather", index=0, id="call")),
    ),
    "an id that comes after the name": (
        chunk(fragment('{"city": ', "weather", index=0)),
        chunk(fragment('"Paris"}', "weather", index=0, id="a")),
        chunk(fragment(ROME, "weather", index=1, id="b")),
    ),
    "whole calls once more at the end": (
        chunk(fragment(PARIS, "weather", index=0, id="a")),
        chunk(fragment(ROME, "weather", index=1, id="b")),
        chunk(fragment(PARIS, "weather", index=0, id="a"), fragment(ROME, "weather", index=1, id="b")),
    ),
}


async def recorded(providers: Providers, *steps: Raw | Text | Finish, call: ModelCall = CALL) -> RecordedRound:
    providers.stub.play(*steps)
    return await record_round(providers.provider(CHAT), call=call)


@pytest.mark.parametrize("server", TWO_CALLS)
async def test_two_calls_are_two_calls(providers: Providers, server: str) -> None:
    found = await recorded(providers, *TWO_CALLS[server], Finish("tool_calls"))
    assert found.calls == BOTH
    ids = [event.call_id for event in found.events if isinstance(event, CallStarted)]
    assert len(set(ids)) == 2
    assert (found.finish.reason, providers.requests) == ("tool_calls", 1)


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call"])
async def test_calls_that_came_count_and_not_the_reason(providers: Providers, reason: str) -> None:
    """Gemini and vLLM with a named tool end with ``stop``."""
    called = await recorded(providers, chunk(fragment(PARIS, "weather", id="a")), Finish(reason))
    assert (called.calls, called.finish.reason) == ([("weather", PARIS)], "tool_calls")
    without = await recorded(providers, Text("No."), Finish(reason))
    assert (without.calls, without.finish.reason) == ([], "stop")


async def test_ids_that_repeat_over_answers_become_others(providers: Providers) -> None:
    before: Item = {"type": "function_call", "call_id": "call_0", "name": "weather", "arguments": "{}"}
    asked = replace(CALL, items=[*CALL.items, before])
    found = await recorded(providers, chunk(fragment(PARIS, "weather", id="call_0")), Finish(), call=asked)
    [started] = [event for event in found.events if isinstance(event, CallStarted)]
    assert started.call_id not in ("", "call_0")


# -- names ------------------------------------------------------------------------------
async def _never(arguments: dict[str, Any], context: ToolContext) -> str:
    raise AssertionError


OFFERED = replace(
    CALL,
    tools=(Tool("calculate", "", {}, _never), Tool("files.read", "", {}, _never, server_label="files")),
    client_tools=(
        {"type": "function", "name": "weather", "parameters": {}},
        {"type": "function", "name": "geo.find", "parameters": {}},
        {"type": "custom", "name": "apply_patch"},
    ),
)
NAMES = {
    "calculate": "calculate",
    "functions.calculate": "calculate",
    "functions.calculate:0": "calculate",
    "calculate:12": "calculate",
    "files.read": "files.read",
    "files-read": "files.read",
    "functions.files-read:3": "files.read",
    "functions.weather:0": "weather",
    "geo-find": "geo.find",
    "functions.apply_patch:0": "apply_patch",
    "functions.missing:0": "functions.missing:0",
    "functions.": "functions.",
    "calc": "calc",
}


@pytest.mark.parametrize("written", NAMES)
async def test_a_tool_is_known_by_each_form_of_its_name(providers: Providers, written: str) -> None:
    assert OFFERED.public_name(written) == NAMES[written]
    found = await recorded(providers, chunk(fragment("{}", written, id=written)), Finish(), call=OFFERED)
    [started] = [event for event in found.events if isinstance(event, CallStarted)]
    kind = "custom_tool_call" if started.name == "apply_patch" else "function_call"
    assert (started.name, started.kind) == (NAMES[written], kind)


async def test_a_name_that_no_tool_has_is_sent_in_a_form_that_servers_take(providers: Providers, mode: str) -> None:
    made_up: Item = {"type": "function_call", "call_id": "c", "name": "functions.löok up:0", "arguments": "{}"}
    output: Item = {"type": "function_call_output", "call_id": "c", "output": "no such tool"}
    await record_round(providers.provider(mode), call=replace(OFFERED, items=[*CALL.items, made_up, output]))
    assert "'functions-l_ok_up_0'" in providers.shown(0)
