"""The notes of a turn: for its tools, and for the model at its beginning."""

from collections.abc import Collection, Sequence
from functools import partial

from gateway_app.agent.tools import MEMORY, TODO, ChangeNotes, NoNotes, Notes
from gateway_app.tools import memory, todo
from responses_app.database import database
from responses_app.models import Response
from responses_app.services.lifecycle.claim import FreshTurn
from responses_app.services.notes import change_notes, read_notes

# In the instructions, which no compaction touches.
MEMORIES = "Your notes from earlier conversations with this user (the tool memory keeps them):"
MISSING = "These MCP servers are not connected, so their tools are missing in this turn: {labels}."
TODO_LIST = "Your todo list, as it was when this turn began (the tool todo has the current one):"


def notes_of(row: Response) -> Notes:
    if row.is_stored:
        return RowNotes(row)
    return NoNotes()


class RowNotes:
    def __init__(self, row: Response) -> None:
        self._row = row

    async def read(self, kind: str) -> Sequence[str]:
        return await database.read_with_retry(read_notes, self._row, kind)

    async def change(self, kind: str, change: ChangeNotes) -> Sequence[str]:
        step = partial(change_notes, self._row, kind, change)
        return await database.write_with_retry(step, response_id=self._row.pk)


def turn_facts(
    row: Response,
    fresh: FreshTurn | None,
    tools: Collection[str],
    missing_servers: Collection[str],
) -> str:
    """The end of the instructions: the notes of the model's tools, and which tools are missing."""
    parts = []
    if missing_servers:
        parts.append(MISSING.format(labels=", ".join(missing_servers)))
    if MEMORY in tools:
        notes = _known_notes(row, fresh, MEMORY)
        if notes:
            parts.append(f"{MEMORIES}\n{memory.listed(notes)}")
    if TODO in tools:
        entries = _known_notes(row, fresh, TODO)
        if entries:
            parts.append(f"{TODO_LIST}\n{todo.listed(entries)}")
    return "\n\n".join(parts)


def _known_notes(row: Response, fresh: FreshTurn | None, kind: str) -> list[str]:
    if fresh is not None:
        return fresh.notes[kind]
    return read_notes(row, kind)
