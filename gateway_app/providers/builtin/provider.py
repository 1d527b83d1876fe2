"""The built-in model: offline and deterministic, for trying things out.

It reads the last user message as plain English. What it understands is listed in docs/builtin.md.
"""

import re
from collections.abc import AsyncGenerator
from itertools import cycle, islice
from textwrap import shorten

import orjson

from gateway_app.agent.compaction import summarised_entries
from gateway_app.agent.events import ModelEvent
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.builtin.sampling import choose_call, sample
from gateway_app.providers.builtin.script import (
    Fail,
    Say,
    Step,
    Think,
    after,
    asked_and_said,
    play,
    words,
)
from responses_app.protocol.items import OUTPUTS, Item, item_text

SLOW_WORDS_PER_SEC = 10.0
MAX_WORDS = 100_000
READ_CHARS = 10_000  # of a message: each look at one of megabytes would hold the event loop
MAX_QUOTED_CHARS = 200  # of a message, in a summary
_WRITE = re.compile(r"\bwrite (\d{1,6}) words\b", re.IGNORECASE)
_SLOWLY = re.compile(r"\bslowly\b", re.IGNORECASE)
_PACE = re.compile(r"\bat (\d{1,5}) words (?:per|a) second\b", re.IGNORECASE)
_THINK = re.compile(r"\b(?:think|reason)\b", re.IGNORECASE)
_FAIL = re.compile(r"\bplease fail\b", re.IGNORECASE)

STORY = (
    "A river keeps its course when the bridge above it breaks. Boats come and go, lamps are lit and put out, "
    "and the water writes the same line down to the sea. Whoever returns to the bank finds it where it was, "
    "a little further on, and nothing of it lost. "
)
HELP = (
    'Try "write 300 words slowly", "write 2000 words at 200 words per second", "think about it", '
    '"calculate 12 * (3 + 4)" or "please fail".'
)


class BuiltinProvider:
    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        return play(compose(call), call)


def compose(call: ModelCall) -> list[Step]:
    """The script for a call: what its last user message asks for, behind what was said of it."""
    last, said = asked_and_said(call)
    told = summarised_entries(call)
    return after(_compose(last, call) if told is None else [Say(_summary(told))], said)


def _summary(told: list[dict[str, str]]) -> str:
    asked = [shorten(entry["text"], MAX_QUOTED_CHARS) for entry in told if entry["from"] == "user"]
    first_and_last = (
        f' The user wrote {len(asked)} times, first: "{asked[0]}", last: "{asked[-1]}".'
        if asked
        else ""
    )
    return f"{len(told)} entries were summed up by the built-in model.{first_and_last}"


def _compose(last: Item, call: ModelCall) -> list[Step]:
    if last["type"] in OUTPUTS:
        return [Say(f"The result is {item_text(last)}.")]
    whole = item_text(last)
    asked = whole[:READ_CHARS]
    pace = _pace(asked)
    script: list[Step] = []
    if _THINK.search(asked):
        script.append(
            Think(
                "The question is read twice, the obvious answer is doubted, and then it is given. ",
                pace,
            )
        )
    if _FAIL.search(asked):
        failure = Fail("The built-in model was asked to fail.")
        return [*script, Say("This answer ends in a failure, as asked. ", pace), failure]
    called = choose_call(asked, call)
    if called is not None:
        return (
            [*script, Say("Let me see. ", pace), called]
            if called.name == "calculate"
            else [*script, called]
        )
    return [*script, Say(_formatted(call) or _answer(asked, whole, call), pace)]


def _formatted(call: ModelCall) -> str | None:
    """JSON, where the request wants JSON."""
    wanted = (call.parameters.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema":
        return orjson.dumps(sample(wanted["schema"])).decode()
    return (
        '{"answer": "This is the built-in model."}' if wanted.get("type") == "json_object" else None
    )


def _pace(asked: str) -> float | None:
    pace = _PACE.search(asked)
    if pace:
        return max(float(pace[1]), 1.0)
    return SLOW_WORDS_PER_SEC if _SLOWLY.search(asked) else None


def _answer(asked: str, whole: str, call: ModelCall) -> str:
    wanted = _WRITE.search(asked)
    if wanted:
        count = min(int(wanted[1]), MAX_WORDS)
        return "".join(islice(cycle(words(STORY)), count)).strip()
    earlier = [item_text(item) for item in call.items[:-1] if item.get("role") == "user"]
    remembered = (
        f' Before that you wrote {len(earlier)} times, first: "{earlier[0]}".' if earlier else ""
    )
    guided = f" My instructions are: {call.instructions}" if call.instructions else ""
    return f'This is the built-in model. You wrote: "{whole}".{remembered}{guided} {HELP}'
