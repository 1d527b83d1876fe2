"""The scripted double: plays the script in the last user message, or answers as the built-in model.

A script is ``{"script": [step, ...]}``; a step is ``{"say": text, "pace": words per second}``,
``{"think": text}``, ``{"call": name, "arguments": {...}}``, ``{"fail": message}`` or ``{"gate": name}``,
which waits until the test opens that gate. Every model call leaves its trace in ``model_calls.jsonl``.
"""

import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from django.conf import settings

from gateway_app.agent.answer_buffer import with_note
from gateway_app.agent.events import ModelEvent
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.turn_limits import LAST_ROUND
from gateway_app.providers.builtin.provider import compose
from gateway_app.providers.builtin.script import (
    Call,
    Fail,
    Say,
    Step,
    Think,
    Wait,
    after,
    play,
    question_and_reply,
)
from responses_app.protocol.items import CALLS, OUTPUTS, item_text
from tests.support.gates import passed


class DeafDispatcher:
    """Loses every hint."""

    def reserve(self, owner_id: int, *, is_stored: bool) -> None:
        return None

    def generate(self, response_id: str, owner_id: int) -> None:
        pass

    def cancel(self, response_id: str) -> None:
        pass


class ScriptedProvider:
    identity = ""

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        self._trace("started", call)
        outcome = "stopped"
        try:
            async with aclosing(play(_script(call), call)) as events:
                async for event in events:
                    yield event
            outcome = "finished"
        finally:
            self._trace(outcome, call)

    def _trace(self, event: str, call: ModelCall) -> None:
        line = {"event": event, "at": time.time(), "pid": os.getpid(), "texts": _texts(with_note(call))}
        line["instructions"] = call.instructions or ""
        with (Path(settings.HERMES_HOME) / "model_calls.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def _texts(call: ModelCall) -> list[str]:
    shown = ("message", *CALLS, *OUTPUTS)
    return [item_text(item) for item in call.items if item["type"] in shown]


def _script(call: ModelCall) -> list[Step]:
    if call.items and call.items[-1].get("content") == LAST_ROUND:
        return [Say("That is all I know.")]
    last, reply = question_and_reply(call)
    asked = item_text(last)
    if not asked.startswith('{"script"'):
        return compose(call)
    body, _ = json.JSONDecoder().raw_decode(asked)  # aider adds a sentence to each question
    steps: list[dict[str, Any]] = body["script"]
    return after([_step(step, f"call_{len(call.items)}_{number}") for number, step in enumerate(steps)], reply)


def _step(step: dict[str, Any], call_id: str) -> Step:
    if "say" in step:
        return Say(step["say"], step.get("pace"))
    if "think" in step:
        return Think(step["think"], step.get("pace"))
    if "call" in step:
        return Call(call_id, step["call"], step["arguments"])
    if "fail" in step:
        return Fail(step["fail"], step.get("code", "server_error"))
    return Wait(lambda: passed(Path(settings.HERMES_HOME), step["gate"]))
