"""The notes of a turn: for its tools, and for the model at its beginning."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from gateway_app.agent.tools import MEMORY, TODO, ChangeNotes, NoNotes, Notes, Tool
from gateway_app.tools import memory, todo
from responses_app.database import database
from responses_app.models import Response
from responses_app.protocol.token_estimate import text_tokens
from responses_app.services.lifecycle.claim import FreshTurn
from responses_app.services.notes import change_notes, read_notes, read_notes_of_kind

# In the instructions, which no compaction touches.
MEMORIES = "Your notes from earlier conversations with this user (the tool memory keeps them):"
MISSING = "These MCP servers are not connected, so their tools are missing in this turn: {labels}."
OLDER_NOTES = "[{count} older notes are not shown: the tool memory lists all with the action read.]"
OTHER_ENTRIES = "[{count} other entries are not shown: the tool todo lists all without arguments.]"
NOTES_SHARE = 8  # the notes of one kind get at most one part in so many of the window
DEFAULT_TOKENS = 4_096  # where the window is not known
TOKENS_PER_LINE = 2  # the mark of a note, and the end of its line
TODO_LIST = "Your todo list, as it was when this turn began (the tool todo has the current one):"


def notes_of(row: Response) -> Notes:
    if row.is_stored:
        return RowNotes(row)
    return NoNotes()


class RowNotes:
    def __init__(self, row: Response) -> None:
        self._row = row

    async def read(self, kind: str) -> Sequence[str]:
        return await database.read_with_retry(read_notes_of_kind, self._row, kind)

    async def change(self, kind: str, change: ChangeNotes) -> Sequence[str]:
        step = partial(change_notes, self._row, kind, change)
        return await database.write_with_retry(step, response_id=self._row.pk)


def turn_facts(
    row: Response,
    fresh: FreshTurn | None,
    tools: Collection[Tool],
    missing_servers: Collection[str],
    window: int = 0,
) -> str:
    """The end of the instructions: the notes of the model's tools, and which tools are missing."""
    names = {tool.name for tool in tools}
    parts = []
    if missing_servers:
        parts.append(MISSING.format(labels=", ".join(missing_servers)))
    if names & {MEMORY, TODO}:
        notes = read_notes(row) if fresh is None else fresh.notes
        parts.append(listed_notes(names, notes, window))
    return "\n\n".join(filter(None, parts))


def listed_notes(
    tool_names: Collection[str], notes: Mapping[str, Sequence[str]], window: int
) -> str:
    """The notes of each of these tools, as far as there is room for them."""
    room = window // NOTES_SHARE or DEFAULT_TOKENS
    parts = []
    memories = notes.get(MEMORY)
    if MEMORY in tool_names and memories:
        parts.append(f"{MEMORIES}\n{_listed_memories(memories, room)}")
    entries = notes.get(TODO)
    if TODO in tool_names and entries:
        parts.append(f"{TODO_LIST}\n{_listed_todo(entries, room)}")
    return "\n\n".join(parts)


def _listed_memories(notes: Sequence[str], room: int) -> str:
    """The newest that fit."""
    newest = _first_that_fit(notes[::-1], room)
    listed = memory.listed(newest[::-1])
    if len(newest) == len(notes):
        return listed
    return OLDER_NOTES.format(count=len(notes) - len(newest)) + "\n" + listed


def _listed_todo(entries: Sequence[str], room: int) -> str:
    """All of the list, or the first of its open entries that fit."""
    shown = _first_that_fit(entries, room)
    if len(shown) == len(entries):
        return todo.listed(entries)
    shown = _first_that_fit([entry for entry in entries if todo.is_open(entry)], room)
    return todo.listed(shown) + "\n" + OTHER_ENTRIES.format(count=len(entries) - len(shown))


def _first_that_fit(texts: Sequence[str], room: int) -> Sequence[str]:
    tokens = 0
    for index, text in enumerate(texts):
        tokens += TOKENS_PER_LINE + text_tokens(text)
        if tokens > room:
            return texts[:index]
    return texts
