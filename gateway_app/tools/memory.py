"""Facts for later conversations with the same user."""

from collections.abc import Sequence
from typing import Any

from gateway_app.agent.tools import MEMORY, Tool, ToolContext
from gateway_app.tools.support.schema import checked, parameters_of

MAX_CHARS = 500
MAX_TOTAL_CHARS = 8000  # every turn begins with them
ACTIONS = ("read", "add", "replace", "remove")

_TEXT = {"type": "string", "maxLength": MAX_CHARS, "default": ""}
PARAMETERS = parameters_of(
    {"action": {"type": "string", "enum": list(ACTIONS)}},
    {
        "content": _TEXT | {"description": "The note to add, or that replaces another one"},
        "old_text": _TEXT | {"description": "A part of the note to replace or remove"},
    },
)


async def memory(arguments: dict[str, Any], context: ToolContext) -> str:
    values = checked(arguments, PARAMETERS)
    action = values["action"]
    content = " ".join(values["content"].split())
    if action not in ACTIONS:
        raise ValueError(f"the argument 'action' must be one of {', '.join(ACTIONS)}")
    if action == "read":
        return listed(await context.notes.read(MEMORY))
    if action in ("add", "replace") and not content:
        raise ValueError(f"the argument 'content' is needed to {action} a note")

    def changed(stored: Sequence[str]) -> Sequence[str]:
        if action == "add":
            return _with(stored, content)
        index = _index(stored, values["old_text"])
        before, after = list(stored[:index]), list(stored[index + 1 :])
        if action == "remove":
            return before + after
        return _within_limit([*before, content, *after])

    return listed(await context.notes.change(MEMORY, changed))


def listed(notes: Sequence[str]) -> str:
    return "\n".join(f"- {note}" for note in notes) or "[there are no notes]"


def _with(stored: Sequence[str], content: str) -> Sequence[str]:
    if content in stored:
        return stored
    return _within_limit([*stored, content])


def _within_limit(notes: Sequence[str]) -> Sequence[str]:
    if sum(map(len, notes)) > MAX_TOTAL_CHARS:
        raise ValueError(
            f"all notes together may have {MAX_TOTAL_CHARS} characters: remove or shorten some first"
        )
    return notes


def _index(stored: Sequence[str], part: str) -> int:
    """Of the only note with this text in it."""
    if not part:
        raise ValueError("the argument 'old_text' is needed: a part of the note that is meant")
    found = [index for index, note in enumerate(stored) if part in note]
    if len(found) != 1:
        raise ValueError(f"{len(found)} notes contain {part!r}; it must be exactly one")
    return found[0]


TOOL = Tool(
    name="memory",
    description=(
        "Keep notes for later conversations with this user: lasting facts and preferences, not "
        "the state of a task, and no secrets. You see the notes at the beginning of each turn. "
        f"All together have at most {MAX_TOTAL_CHARS} characters."
    ),
    parameters=PARAMETERS,
    run=memory,
)
