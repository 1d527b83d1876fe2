"""Tools that leave traces, wait, fail and ask: one line in ``effects.txt`` for each time one really ran."""

import asyncio
import json
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.config.terminal_limits import Limits
from tests.support.gates import passed

ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


def _home(context: ToolContext) -> Path:
    return next(folder for folder in context.workspace.parents if folder.name == "workspaces").parent


async def _effect(arguments: dict[str, Any], context: ToolContext) -> str:
    """Says ``text``, after the gate named ``gate`` was opened."""
    home = _home(context)
    _trace(home, str(arguments.get("text", "")))
    await asyncio.sleep(float(arguments.get("secs", 0)))
    if gate := arguments.get("gate"):
        await passed(home, gate)
    return str(arguments.get("text", "done"))


async def _look(arguments: dict[str, Any], context: ToolContext) -> str:
    """The traces so far; ``mark`` leaves a file that says that the call has begun."""
    home = _home(context)
    if mark := arguments.get("mark"):
        (home / f"looking-{mark}").touch()
    if gate := arguments.get("gate"):
        await passed(home, gate)
    traces = home / "effects.txt"
    return traces.read_text() if traces.exists() else ""


async def _explode(arguments: dict[str, Any], context: ToolContext) -> str:
    raise RuntimeError(arguments.get("text", "the tool exploded"))


async def _garbage(arguments: dict[str, Any], context: ToolContext) -> str:
    return {"not": "text", "nul": "\0", "half": "\ud800"}  # type: ignore[return-value]


async def _forever(arguments: dict[str, Any], context: ToolContext) -> str:
    await asyncio.Event().wait()
    return "never"


async def _desert(arguments: dict[str, Any], context: ToolContext) -> str:
    raise asyncio.CancelledError


async def _chatty(arguments: dict[str, Any], context: ToolContext) -> str:
    for piece in ("one ", "two ", "three"):
        context.report(piece)
    return "x" * int(arguments.get("size", 1))


async def _printer(arguments: dict[str, Any], context: ToolContext) -> str:
    """Prints until it is stopped, once more after that, and leaves its trace when that has had its time."""
    try:
        while True:
            context.report("printed ")
            await asyncio.sleep(0.01)
    finally:
        loop = asyncio.get_running_loop()
        loop.call_later(0.25, context.report, "late ")
        loop.call_later(0.6, _trace, _home(context), str(arguments.get("text", "")))


def _trace(home: Path, text: str) -> None:
    with (home / "effects.txt").open("a") as file:
        file.write(f"{text}\n")


async def _again(arguments: dict[str, Any], context: ToolContext) -> str:
    number = arguments.get("number", 0) + 1
    return json.dumps({"script": [{"call": "again", "arguments": {"number": number}}]})


def _always(arguments: dict[str, Any]) -> str:
    return "the test wants to be asked"


def _quoting(arguments: dict[str, Any]) -> str:
    return f"the test wants to be asked about {arguments.get('text')}"


def make_tools(terminal_mode: str, limits: Limits) -> dict[str, Tool]:
    tools = (
        Tool("effect", "Leaves a trace.", ANYTHING, _effect),
        Tool("safe_effect", "Leaves a trace, and may run again.", ANYTHING, _effect, is_replay_safe=True),
        Tool(
            "parallel_effect",
            "Leaves a trace, beside other calls.",
            ANYTHING,
            _effect,
            is_replay_safe=True,
            is_read_only=True,
        ),
        Tool("look", "Waits for a gate and reads the traces.", ANYTHING, _look, is_replay_safe=True, is_read_only=True),
        Tool("guarded", "Leaves a trace, after consent.", ANYTHING, _effect, asks_approval=_always),
        Tool(
            "client_guarded",
            "Leaves a trace, when its client consents.",
            ANYTHING,
            _effect,
            asks_approval=_always,
            approver="client",
        ),
        Tool(
            "guarded_once",
            "Leaves a trace; consent to it is not kept.",
            ANYTHING,
            _effect,
            asks_approval=_always,
            can_keep_consent=False,
        ),
        Tool("quoted", "Asks, with its text.", ANYTHING, _effect, asks_approval=_quoting),
        Tool("_hidden", "Leaves a trace, and is not shown.", ANYTHING, _effect),
        Tool("explode", "Fails.", ANYTHING, _explode),
        Tool("garbage", "Returns what is not text.", ANYTHING, _garbage),
        Tool("forever", "Never ends.", ANYTHING, _forever, time_limit_secs=0.2),
        Tool("deserter", "Gives up as if it had been cancelled.", ANYTHING, _desert),
        Tool("again", "Makes the scripted model call it again.", ANYTHING, _again),
        Tool("printer", "Prints until it is stopped.", ANYTHING, _printer),
        Tool("chatty", "Says what it does.", ANYTHING, _chatty),
    )
    return {tool.name: tool for tool in tools}
