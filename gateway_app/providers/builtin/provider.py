"""The built-in model: offline and deterministic, for trying things out.

It reads the last user message as plain English. What it understands is listed in docs/builtin.md.
"""

import re
from collections.abc import AsyncGenerator
from itertools import cycle, islice
from textwrap import shorten

import orjson

from gateway_app.agent.events import ModelEvent
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.summaries import summarised_entries
from gateway_app.providers.builtin.sampling import choose_call, sample
from gateway_app.providers.builtin.script import (
    Fail,
    Say,
    Step,
    Think,
    after,
    play,
    question_and_reply,
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
    "A river keeps its course when the bridge above it breaks. Boats come and go, lamps are lit "
    "and put out, and the water writes the same line down to the sea. A walker returns to the bank "
    "and finds it where it was, a little further on, and nothing of it lost. "
)
REASONING = "The question is read twice, the obvious answer is doubted, and then it is given. "
HELP = (
    'Try "write 300 words slowly", "write 2000 words at 200 words per second", "think about it", '
    '"calculate 12 * (3 + 4)" or "please fail".'
)


class BuiltinProvider:
    identity = ""

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        return play(compose(call), call)


def compose(call: ModelCall) -> list[Step]:
    """The script for a call: what its last user message asks for, without the reply up to a cut."""
    question, reply = question_and_reply(call)
    summarised = summarised_entries(call)
    if summarised is None:
        script = _compose(question, call)
    else:
        script = [Say(_summary(summarised))]
    return after(script, reply)


def _summary(entries: list[dict[str, str]]) -> str:
    summary = f"{len(entries)} entries were summed up by the built-in model."
    asked = [entry["text"] for entry in entries if entry["from"] == "user"]
    if not asked:
        return summary
    first = shorten(asked[0], MAX_QUOTED_CHARS)
    last = shorten(asked[-1], MAX_QUOTED_CHARS)
    return f'{summary} The user wrote {len(asked)} times, first: "{first}", last: "{last}".'


def _compose(question: Item, call: ModelCall) -> list[Step]:
    if question["type"] in OUTPUTS:
        return [Say(f"The result is {item_text(question)}.")]
    whole = item_text(question)
    asked = whole[:READ_CHARS]
    pace = _pace(asked)
    script: list[Step] = []
    if _may_think(call) and _THINK.search(asked):
        script.append(Think(REASONING, pace))
    if _FAIL.search(asked):
        script.append(Say("This answer ends in a failure, as asked. ", pace))
        script.append(Fail("The built-in model was asked to fail."))
        return script
    called = choose_call(asked, call)
    if called is None:
        script.append(Say(_formatted(call) or _answer(asked, whole, call), pace))
        return script
    if called.name == "calculate":
        script.append(Say("Let me see. ", pace))
    script.append(called)
    return script


def _may_think(call: ModelCall) -> bool:
    reasoning = call.parameters.get("reasoning") or {}
    return bool(reasoning.get("effort") != "none")


def _formatted(call: ModelCall) -> str | None:
    """JSON, where the request wants JSON."""
    text_options = call.parameters.get("text") or {}
    text_format = text_options.get("format") or {}
    if text_format.get("type") == "json_schema":
        return orjson.dumps(sample(text_format["schema"])).decode()
    if text_format.get("type") == "json_object":
        return '{"answer": "This is the built-in model."}'
    return None


def _pace(asked: str) -> float | None:
    pace = _PACE.search(asked)
    if pace:
        return max(float(pace[1]), 1.0)
    if _SLOWLY.search(asked):
        return SLOW_WORDS_PER_SEC
    return None


def _answer(asked: str, whole: str, call: ModelCall) -> str:
    wanted = _WRITE.search(asked)
    if wanted:
        count = min(int(wanted[1]), MAX_WORDS)
        return "".join(islice(cycle(words(STORY)), count)).strip()
    parts = [f'This is the built-in model. You wrote: "{whole}".']
    earlier = [item_text(item) for item in call.items[:-1] if item.get("role") == "user"]
    if earlier:
        parts.append(f'Before that you wrote {len(earlier)} times, first: "{earlier[0]}".')
    instructions = (call.instructions or "").removeprefix(call.core_prompt).strip()
    if instructions:
        parts.append(f"My instructions are: {instructions}")
    parts.append(HELP)
    return " ".join(parts)
