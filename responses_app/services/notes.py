"""Notes of models: todo lists of sessions, and memories of owners."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import QuerySet

from responses_app.eventlog import Fenced
from responses_app.models import Note, NoteKind, Response, Session
from responses_app.models.compiled import CompiledQuery

NO_SESSION = 0  # no row has this key
Change = Callable[[Sequence[str]], Sequence[str]]


def read_notes(row: Response) -> dict[str, list[str]]:
    """Those of the session and of the owner of this turn, by kind; an unstored turn has none."""
    if not row.is_stored:
        return {}
    return notes_in(row.owner_id, row.session_id, row.session_key)


def notes_in(owner_id: int, session_id: int | None, session_key: str) -> dict[str, list[str]]:
    """For the turns of a session; None is one that is still to begin."""
    found: dict[str, list[str]] = {str(kind): [] for kind in NoteKind}
    for kind, text in _visible_notes.rows(owner_id, session_id or NO_SESSION, session_key):
        found[kind].append(text)
    return found


def read_notes_of_kind(row: Response, kind: str) -> list[str]:
    return read_notes(row).get(kind, [])


def _visible(owner_id: int, session_id: int, session_key: str) -> QuerySet[Note, Any]:
    notes = Note.objects.visible_in(owner_id, session_id, session_key)
    return notes.values_list("kind", "text")


_visible_notes = CompiledQuery(_visible)


def change_notes(row: Response, kind: str, change: Change) -> list[str]:
    """Replace the notes by what ``change`` makes of them, in the caller's transaction."""
    if not Response.objects.open().filter(pk=row.pk, attempt=row.attempt).exists():
        raise Fenced(row.pk)
    # Locked, so that a deletion of the session comes before this or erases it too.
    session = Session.objects.select_for_update().filter(pk=row.session_id, deleted_at__isnull=True)
    if session.first() is None:
        raise ValueError("the session was deleted")
    scope = Note.objects.in_scope(kind, row.owner_id, row.session_id, row.session_key)
    stored = list(scope.select_for_update())
    changed = list(change([note.text for note in stored]))
    kept = 0
    while kept < min(len(stored), len(changed)) and stored[kept].text == changed[kept]:
        kept += 1
    created_at = {note.text: note.created_at for note in stored}
    Note.objects.filter(pk__in=[note.pk for note in stored[kept:]]).delete()
    for text in changed[kept:]:
        note = Note(owner_id=row.owner_id, kind=kind, text=text)
        if kind == NoteKind.TODO:
            note.session_id = row.session_id
        else:
            note.session_key = row.session_key
        if text in created_at:
            note.created_at = created_at[text]
        note.save(force_insert=True)
    return changed
