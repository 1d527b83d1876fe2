"""Scripts: a model's answer as a list of steps, played as the events a real model would send."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from gateway_app.agent.answer_buffer import CONTINUE
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
    """Until somebody says so; for doubles that a test steers."""

    until: Callable[[], Awaitable[None]]


Step = Say | Think | Call | Fail | Wait


def words(text: str) -> list[str]:
    return _WORD.findall(text) or ([text] if text else [])


def count_tokens(call: ModelCall) -> int:
    """Words stand in for tokens."""
    texts = [call.instructions or "", *(item_text(item) for item in call.items)]
    return sum(len(text.split()) for text in texts)


def asked_and_said(call: ModelCall) -> tuple[Item, str]:
    """What the model must answer, and what it has said to that before it was cut."""
    spoken = [item for item in call.items if item["type"] == "message" or item["type"] in OUTPUTS]
    said = ""
    if len(spoken) > 1 and item_text(spoken[-1]) == CONTINUE:
        spoken.pop()
        while spoken[-1].get("role") == "assistant":
            said = item_text(spoken.pop()) + said
    return (spoken[-1] if spoken else {"type": "message", "role": "user", "content": ""}), said


def after(script: Sequence[Step], said: str) -> list[Step]:
    """The rest of a script, behind what was said of it."""
    steps = list(script)
    while said and steps:
        step = steps.pop(0)
        if isinstance(step, Say):
            rest = step.text[len(said) :]
            said = said[len(step.text) :]
            if rest:
                steps.insert(0, replace(step, text=rest))
    return steps


async def play(script: Sequence[Step], call: ModelCall) -> AsyncGenerator[ModelEvent]:
    """Word by word, at each step's pace, within the call's token limit."""
    budget = call.max_output_tokens
    spent = reasoned = 0
    reason = "stop"
    for step in script:
        if isinstance(step, Fail):
            raise ModelFailed(step.message, step.code)
        if isinstance(step, Wait):
            await step.until()
            continue
        if isinstance(step, Call):
            is_custom = any(
                tool["name"] == step.name and tool["type"] == "custom" for tool in call.client_tools
            )
            async for event in _play_call(step, is_custom=is_custom):
                yield event
            spent += 1
            reason = "tool_calls"
            continue
        kind = TextDelta if isinstance(step, Say) else ReasoningDelta
        for word in words(step.text):
            if spent == budget:
                yield ModelFinished(
                    "length", Usage(count_tokens(call), spent, reasoning_tokens=reasoned)
                )
                return
            await _pause(step.words_per_sec, spent)
            yield kind(word)
            spent += 1
            reasoned += isinstance(step, Think)
    yield ModelFinished(reason, Usage(count_tokens(call), spent, reasoning_tokens=reasoned))


async def _play_call(step: Call, *, is_custom: bool) -> AsyncIterator[ModelEvent]:
    yield CallStarted(step.call_id, step.name, "custom_tool_call" if is_custom else "function_call")
    arguments = (
        step.arguments.get("input", "sample")
        if is_custom
        else orjson.dumps(step.arguments).decode()
    )
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
