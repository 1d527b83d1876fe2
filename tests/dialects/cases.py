"""The columns of the matrix. Each case checks what the client sees and what the model server was sent."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.config.presets.facts import Continuation
from tests.dialects.conversations import Conversation, Wanted
from tests.dialects.dialect import Dialect
from tests.dialects.upstream import OUTPUT_TOKENS, DialectUpstream, is_continuation, shown
from tests.support.model_stub import Asked, Calls, Finish, Gate, Text, Thought
from tests.support.server import Server
from tests.support.stored_rows import stored_rows

WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
LONG = "a long story " * 2000
# What clients send although most servers do not know it.
MORE = {
    "user": "u-1",
    "prompt_cache_key": "cache-1",
    "safety_identifier": "s-1",
    "metadata": {"topic": "greetings"},
    "parallel_tool_calls": True,
    "top_k": 20,
    "frequency_penalty": 0.1,
    "seed": 7,
    "chat_template_kwargs": {"enable_thinking": True},
}
THOUGHT = "A tool will know."


@dataclass(frozen=True)
class Bench:
    server: Server
    upstream: DialectUpstream
    conversation: Conversation

    @property
    def dialect(self) -> Dialect:
        return self.upstream.dialect


def check_text(bench: Bench) -> None:
    greeting = "Grüße, **Welt** 🎉!\n\n1. eins\n2. zwei\n"
    bench.upstream.play(Text(greeting), Finish())
    bench.upstream.play(Text("Zwei."), Finish())
    wanted = Wanted(system="Speak German.", late_system="Be short.", limit_tokens=500, more=MORE)
    seen = bench.conversation.say("Hi", wanted)
    assert (seen.text, seen.error) == (greeting, None)
    sent = bench.upstream.bodies[0]
    assert 500 in [sent.get(name) for name in bench.dialect.limit_fields]
    _check_usage(bench, seen.usage)
    again = bench.conversation.say("And then?")
    assert (again.text, again.error) == ("Zwei.", None)
    assert all(text in shown(bench.upstream.bodies[1]) for text in ("Hi", "**Welt** 🎉", "And then?"))
    _check_refusals_of_fields(bench)


def check_tools(bench: Bench) -> None:
    upstream = bench.upstream
    arguments = '{"expression": "6*7"}'
    if bench.dialect.sends_broken_json:
        arguments = '{"expression": "6*7",}'
    call = upstream.call("calculate", arguments)
    upstream.play(Thought(THOUGHT), Text("Let me see. "), Calls((call,)), Finish())
    upstream.play(Text("It is 42."), Finish())
    upstream.play(Text("You are welcome."), Finish())
    seen = bench.conversation.say("What is 6*7?")
    assert (seen.text.strip(), seen.tools_run, seen.error) == ("Let me see. It is 42.", ["calculate"], None)
    assert "42" in _results(upstream.bodies[1])[0]
    assert bench.dialect.must_return in shown(upstream.bodies[1])
    assert bench.conversation.say("Thanks!").text == "You are welcome."
    assert upstream.refused == []


def check_parallel_tools(bench: Bench) -> None:
    upstream = bench.upstream
    wanted = Wanted(functions=[WEATHER])
    rome = '{"city": "Rome"}'
    if bench.dialect.sends_broken_json:
        rome = '{"city": "Rome",}'
    calls = (upstream.call("get_weather", '{"city": "Paris"}'), upstream.call("get_weather", rome))
    upstream.play(Thought("Two cities."), Calls(calls), Finish())
    upstream.play(Text("Tomorrow as today."), Finish())
    seen = bench.conversation.say("The weather in Paris and Rome?", wanted)
    assert ([call.name for call in seen.calls], seen.error) == (["get_weather", "get_weather"], None)
    outputs = {seen.call_of("Rome").call_id: "rain", seen.call_of("Paris").call_id: "sun"}
    again = bench.conversation.answer(outputs, "And tomorrow?", wanted)
    assert (again.text, again.error) == ("Tomorrow as today.", None)
    assert _results(upstream.bodies[1]) == ["sun", "rain"]  # templates without ids pair them by position
    assert "And tomorrow?" in shown(upstream.bodies[1])
    assert upstream.refused == []


def check_reasoning(bench: Bench) -> None:
    upstream = bench.upstream
    upstream.play(Thought("Six times seven."), Text("42"), Finish())
    upstream.play(Text("Yes."), Finish())
    seen = bench.conversation.say("What is 6*7?", Wanted(effort="low"))
    expected = "" if bench.dialect.hides_reasoning else "Six times seven."
    assert (seen.text.strip(), seen.reasoning, seen.error) == ("42", expected, None)
    body = upstream.bodies[0]
    assert body.get("reasoning_effort") == "low" or body["reasoning"]["effort"] == "low"
    assert bench.conversation.say("Sure?").text == "Yes."
    assert "<think>" not in shown(upstream.bodies[1])
    assert upstream.refused == []


def check_structured_output(bench: Bench) -> None:
    upstream = bench.upstream
    upstream.play(Text('{"city": "Rome"}'), Finish())
    seen = bench.conversation.say("The capital of Italy as JSON?", Wanted(functions=[], schema=SCHEMA))
    assert (json.loads(seen.text), seen.error) == ({"city": "Rome"}, None)
    assert bench.dialect.has_format(upstream.bodies[0], SCHEMA), upstream.bodies[0]
    assert upstream.refused == []
    upstream.play(Text('{"any": 1}'), Finish())
    seen = bench.conversation.say("Any JSON?", Wanted(functions=[], is_any_json=True))
    assert (json.loads(seen.text), seen.error) == ({"any": 1}, None)


def check_overflow(bench: Bench) -> None:
    """The user's message alone is too long: nothing can be left out to make room for it."""
    if bench.dialect.overflow is None:
        _check_cut_prompt(bench)
        return
    seen = bench.conversation.say(LONG)
    assert seen.text == ""
    assert seen.error is not None
    # The error of a response has one of OpenAI's codes, and the exact one before its message.
    named = f"{seen.error['code']} {seen.error['message']}"
    assert "context_length_exceeded" in named


def _check_cut_prompt(bench: Bench) -> None:
    """The server leaves out the beginning and answers; a count far below the estimate shows it."""
    seen = bench.conversation.say(LONG * 2)
    assert (seen.text, seen.error) == ("Hello.", None)
    [(deviations,)] = stored_rows(bench.server, "response", "protocol_deviations", id=seen.response_id)
    assert "prompt cut by the upstream" in str(deviations)


def check_cut(bench: Bench) -> None:
    upstream = bench.upstream
    upstream.play(Text("one two "), *bench.dialect.broken_off)
    upstream.play(Text("three four"), Finish())
    seen = bench.conversation.say("Count")
    assert (seen.text, seen.error) == ("one two three four", None)
    _check_continued(bench, upstream.answered[1], "one two ")
    assert upstream.refused == []


def check_restart(bench: Bench) -> None:
    upstream = bench.upstream
    upstream.play(Calls((upstream.call("calculate", '{"expression": "6*7"}'),)), Finish())
    upstream.play(Text("one two "), Gate(threading.Event()))
    upstream.play(Text("three four"), Finish())
    started = bench.conversation.begin("Count", until="one two ")
    bench.server.kill()
    bench.server.start()
    assert bench.server.ended(started)["status"] == "completed"
    assert bench.conversation.stored_text(started) == "one two three four"
    assert len(upstream.answered) == 3  # the first round is not asked again
    assert _results(upstream.bodies[2]) == _results(upstream.bodies[1])
    _check_continued(bench, upstream.answered[2], "one two ")
    assert upstream.refused == []


CASES: dict[str, Callable[[Bench], None]] = {
    "text": check_text,
    "tools": check_tools,
    "parallel-tools": check_parallel_tools,
    "reasoning": check_reasoning,
    "structured-output": check_structured_output,
    "overflow": check_overflow,
    "cut": check_cut,
    "restart": check_restart,
}


def _check_refusals_of_fields(bench: Bench) -> None:
    """An upstream that speaks the Responses API is sent every field, and those that it refuses only once."""
    if bench.dialect.api_mode == "codex_responses":
        assert all(reason.startswith("Unknown parameter") for reason in bench.upstream.refused)
    else:
        assert bench.upstream.refused == []


def _check_usage(bench: Bench, usage: dict[str, int]) -> None:
    if bench.dialect.counts_tokens:
        assert usage == {"input": bench.upstream.counted[0], "output": OUTPUT_TOKENS}
    else:
        assert min(usage.values()) > 0  # estimated


def _results(body: dict[str, Any]) -> list[str]:
    """The outputs of tools in a request, in both protocols."""
    found = [str(message["content"]) for message in body.get("messages", ()) if message["role"] == "tool"]
    for item in body.get("input", ()):
        if item["type"] == "function_call_output":
            found.append(str(item["output"]))
    return found


def _check_continued(bench: Bench, asked: Asked, text: str) -> None:
    if bench.dialect.continuation is not Continuation.NOTE:
        assert is_continuation(bench.dialect, asked, text), asked.body
        assert CONTINUE not in shown(asked.body)
        return
    assert text in shown(asked.body)
    last = (asked.body.get("messages") or asked.body["input"])[-1]
    assert last["role"] == "user"
    assert CONTINUE in str(last["content"])
