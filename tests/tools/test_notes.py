"""todo and memory: what a model may write down, and how much."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.tools import ChangeNotes, ToolContext
from gateway_app.tools.memory import MAX_TOTAL_CHARS, memory
from gateway_app.tools.todo import todo


class Notebook:
    def __init__(self) -> None:
        self.notes: dict[str, Sequence[str]] = {}

    async def read(self, kind: str) -> Sequence[str]:
        return self.notes.get(kind, ())

    async def change(self, kind: str, change: ChangeNotes) -> Sequence[str]:
        self.notes[kind] = change(self.notes.get(kind, ()))
        return self.notes[kind]


@pytest.fixture
def context() -> ToolContext:
    return ToolContext(Path(), print, Notebook())


async def test_a_todo_list_is_replaced_and_read(context: ToolContext) -> None:
    assert await todo({}, context) == "[the list is empty]"
    entries = [{"content": "look", "status": "completed"}, {"content": "leap\nfar"}]
    assert await todo({"todos": entries}, context) == "[x] look\n[ ] leap far"
    assert await todo({}, context) == "[x] look\n[ ] leap far"
    assert await todo({"todos": []}, context) == "[the list is empty]"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"todos": "x"}, "'todos' must be an array"),
        ({"todos": [{"content": "x"}] * 51}, "at most 50"),
        ({"todos": ["x"]}, r"todos\[0\] must be an object"),
        ({"todos": [{"content": ""}]}, r"todos\[0\]\.content"),
        ({"todos": [{"content": "x", "status": "maybe"}]}, r"todos\[0\]\.status must be one of pending"),
        ({"list": []}, "no argument 'list'"),
    ],
)
async def test_a_bad_todo_list_names_the_field(arguments: dict[str, Any], reason: str, context: ToolContext) -> None:
    with pytest.raises(ValueError, match=reason):
        await todo(arguments, context)


async def test_memories_are_added_replaced_and_removed(context: ToolContext) -> None:
    await memory({"action": "add", "content": "likes tea"}, context)
    await memory({"action": "add", "content": "lives in Rome"}, context)
    assert await memory({"action": "add", "content": "likes tea"}, context) == "- likes tea\n- lives in Rome"
    changed = {"action": "replace", "old_text": "Rome", "content": "lives in Oslo"}
    assert await memory(changed, context) == "- likes tea\n- lives in Oslo"
    assert await memory({"action": "remove", "old_text": "tea"}, context) == "- lives in Oslo"
    assert await memory({"action": "read"}, context) == "- lives in Oslo"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"action": "forget"}, "'action' must be one of read"),
        ({"action": "add"}, "'content' is needed"),
        ({"action": "add", "content": "x" * 501}, "at most 500"),
        ({"action": "remove", "old_text": "x"}, "0 notes contain 'x'"),
        ({"action": "remove"}, "'old_text' is needed"),
    ],
)
async def test_a_bad_memory_says_why(arguments: dict[str, Any], reason: str, context: ToolContext) -> None:
    with pytest.raises(ValueError, match=reason):
        await memory(arguments, context)


async def test_memories_have_a_limit(context: ToolContext) -> None:
    for number in range(MAX_TOTAL_CHARS // 500):
        await memory({"action": "add", "content": f"{number:03}" + "x" * 497}, context)
    with pytest.raises(ValueError, match="remove or shorten"):
        await memory({"action": "add", "content": "one more"}, context)


async def test_an_unstored_response_has_no_notes() -> None:
    with pytest.raises(ValueError, match="not stored"):
        await memory({"action": "add", "content": "x"}, ToolContext(Path(), print))
