"""Scripts: a model's answer as a list of steps, played as the events a real model would send."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from responses_app.protocol.items import OUTPUTS, Item, item_text

_WORD = re.compile(r"(?:\A\s*)?\S+\s*")  # the anchor keeps it linear on a text of spaces
YIELD_EVERY_WORDS = 50  # an unpaced script must not keep the event loop to itself


@dataclass(frozen=True)
class Say:
    text: str
    words_per_sec: float | None = None


@dataclass(frozen=True)
class Think:
    text: str
    words_per_sec: float | None = None


@dataclass(frozen=True)
class Call:
    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Fail:
    message: str
    code: str = "server_error"


@dataclass(frozen=True)
class Wait:
    """Wait for a signal; for the scripts of tests."""

    until: Callable[[], Awaitable[None]]


Step = Say | Think | Call | Fail | Wait


def words(text: str) -> list[str]:
    found = _WORD.findall(text)
    if not found and text:
        return [text]
    return found


def count_tokens(call: ModelCall) -> int:
    """Words stand in for tokens."""
    count = len((call.instructions or "").split())
    for item in call.items:
        count += len(item_text(item).split())
    return count


def question_and_reply(call: ModelCall) -> tuple[Item, str]:
    """The item that the model must answer, and its reply up to a cut."""
    texts = [item for item in call.items if item["type"] == "message" or item["type"] in OUTPUTS]
    reply = ""
    if call.cut_at is not None:
        while texts and texts[-1].get("role") == "assistant":
            reply = item_text(texts.pop()) + reply
    if not texts:
        return {"type": "message", "role": "user", "content": ""}, reply
    return texts[-1], reply


def after(script: Sequence[Step], reply: str) -> list[Step]:
    """The rest of a script, behind the part of its text that is in the reply."""
    steps = list(script)
    while reply and steps:
        step = steps.pop(0)
        if isinstance(step, Say):
            rest = step.text[len(reply) :]
            reply = reply[len(step.text) :]
            if rest:
                steps.insert(0, replace(step, text=rest))
    return steps


async def play(script: Sequence[Step], call: ModelCall) -> AsyncGenerator[ModelEvent]:
    """Word by word, at each step's pace, within the call's token limit."""
    input_tokens = count_tokens(call)
    custom_names = {tool["name"] for tool in call.client_tools if tool["type"] == "custom"}
    spent = 0
    reasoned = 0
    reason = "stop"
    for step in script:
        if isinstance(step, Fail):
            raise ModelFailed(step.message, step.code)
        if isinstance(step, Wait):
            await step.until()
            continue
        if isinstance(step, Call):
            async for event in _play_call(step, is_custom=step.name in custom_names):
                yield event
            spent += 1
            reason = "tool_calls"
            continue
        for word in words(step.text):
            if spent == call.max_output_tokens:
                usage = Usage(input_tokens, spent, reasoning_tokens=reasoned)
                yield ModelFinished("length", usage)
                return
            await _pause(step.words_per_sec, spent)
            spent += 1
            if isinstance(step, Say):
                if not await _was_written(word, call):
                    yield TextDelta(word)
            else:
                reasoned += 1
                yield ReasoningDelta(word)
    yield ModelFinished(reason, Usage(input_tokens, spent, reasoning_tokens=reasoned))


async def _was_written(word: str, call: ModelCall) -> bool:
    return call.text_listener is not None and await call.text_listener.write([word])


async def _play_call(step: Call, *, is_custom: bool) -> AsyncIterator[ModelEvent]:
    if is_custom:
        yield CallStarted(step.call_id, step.name, "custom_tool_call")
        arguments = step.arguments.get("input", "sample")
    else:
        yield CallStarted(step.call_id, step.name)
        arguments = orjson.dumps(step.arguments).decode()
    half = len(arguments) // 2
    for part in (arguments[:half], arguments[half:]):
        await asyncio.sleep(0)
        yield CallArguments(step.call_id, part)
    yield CallFinished(step.call_id)


async def _pause(words_per_sec: float | None, spent: int) -> None:
    if words_per_sec:
        await asyncio.sleep(1 / words_per_sec)
    elif spent % YIELD_EVERY_WORDS == 0:
        await asyncio.sleep(0)
