"""Scripts: a model's answer as a list of steps, played as the events a real model would send."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from gateway_app.agent.context import text_of
from gateway_app.agent.types import (
    CallArguments,
    CallFinished,
    CallStarted,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    Usage,
)

_WORD = re.compile(r"\s*\S+\s*")
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
    texts = [call.instructions or "", *(text_of(item) for item in call.items)]
    return sum(len(text.split()) for text in texts)


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
            async for event in _play_call(step):
                yield event
            spent += 1
            reason = "tool_calls"
            continue
        kind = TextDelta if isinstance(step, Say) else ReasoningDelta
        for word in words(step.text):
            if spent == budget:
                yield ModelFinished("length", Usage(count_tokens(call), spent, reasoning_tokens=reasoned))
                return
            await _pause(step.words_per_sec, spent)
            yield kind(word)
            spent += 1
            reasoned += isinstance(step, Think)
    yield ModelFinished(reason, Usage(count_tokens(call), spent, reasoning_tokens=reasoned))


async def _play_call(step: Call) -> AsyncIterator[ModelEvent]:
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
