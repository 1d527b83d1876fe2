"""The steps of a longer task: a list of this session, which no compaction loses."""

from collections.abc import Sequence
from typing import Any

from gateway_app.agent.tools import TODO, Tool, ToolContext

MAX_ENTRIES = 50
MAX_CHARS = 500
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "maxItems": MAX_ENTRIES,
            "description": "The whole list, in order; it replaces the old one. Without it, the list is read",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "minLength": 1, "maxLength": MAX_CHARS},
                    "status": {"type": "string", "enum": list(MARKS), "default": "pending"},
                },
                "required": ["content"],
            },
        }
    },
    "additionalProperties": False,
}


async def todo(arguments: dict[str, Any], context: ToolContext) -> str:
    for name in arguments:
        if name != "todos":
            raise ValueError(f"there is no argument {name!r}; the only one is todos")
    given = arguments.get("todos")
    if given is None:
        return listed(await context.notes.read(TODO))
    entries = _entries(given)

    def replaced(stored: Sequence[str]) -> Sequence[str]:
        return entries

    return listed(await context.notes.change(TODO, replaced))


def listed(entries: Sequence[str]) -> str:
    return "\n".join(entries) or "[the list is empty]"


def is_open(entry: str) -> bool:
    return not entry.startswith((MARKS["completed"], MARKS["cancelled"]))


def _entries(given: Any) -> list[str]:
    if not isinstance(given, list) or len(given) > MAX_ENTRIES:
        raise ValueError(f"the argument 'todos' must be an array of at most {MAX_ENTRIES} entries")
    entries = []
    for index, entry in enumerate(given):
        name = f"todos[{index}]"
        if not isinstance(entry, dict):
            raise ValueError(f"{name} must be an object with content and status")
        content = entry.get("content")
        if not isinstance(content, str) or not 0 < len(content.strip()) <= MAX_CHARS:
            raise ValueError(f"{name}.content must be a string of 1 to {MAX_CHARS} characters")
        status = entry.get("status") or "pending"
        if status not in MARKS:
            raise ValueError(f"{name}.status must be one of {', '.join(MARKS)}")
        line = " ".join(content.split())
        entries.append(f"{MARKS[status]} {line}")
    return entries


TOOL = Tool(
    name="todo",
    description=(
        "Keep a list of the steps of a task with several parts: write it when you begin, and "
        "update it whenever a step is done. It belongs to this conversation and stays when older "
        "messages are summarized. Call it without arguments to read the list."
    ),
    parameters=PARAMETERS,
    run=todo,
    is_replay_safe=True,  # it replaces the whole list
)
