"""Purge: removes erased words from the FTS5 table of SQLite, too.

FTS5 marks a deleted row as deleted, and keeps its words until the parts of the index that have them
are merged. This merges all parts, a few pages at a time: the writes of all streams wait for a step.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from django.db import connection

from responses_app.database import database
from responses_app.models.search import FTS_TABLE

ERASED_TABLE = f"{FTS_TABLE}_erased"
STEP_PAGES = 100  # about 400 KB, some milliseconds


def is_purge_due() -> bool:
    return connection.vendor == "sqlite" and _erasures() is not None


async def purge_in_steps() -> None:
    """In the writer of a server, between its other work."""
    if not await database.read(is_purge_due):
        return
    erasures = await database.read(_erasures)
    is_changed = await database.write(partial(_merge, -STEP_PAGES))
    while is_changed:
        is_changed = await database.write(partial(_merge, STEP_PAGES))
    await database.write(partial(_note_purged, erasures))


def purge(begin: Callable[[], AbstractContextManager[None]]) -> None:
    """In the transactions of a command."""
    if not is_purge_due():
        return
    erasures = _erasures()
    with begin():
        is_changed = _merge(-STEP_PAGES)
    while is_changed:
        with begin():
            is_changed = _merge(STEP_PAGES)
    with begin():
        _note_purged(erasures)


def _erasures() -> int | None:
    """How often entries were erased since the last purge; None: never."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count FROM {ERASED_TABLE}")
        row = cursor.fetchone()
    if row is None:
        return None
    return int(row[0])


def _merge(pages: int) -> bool:
    """One step; False when there was nothing to merge. A negative number begins with all parts."""
    with connection.cursor() as cursor:
        before = connection.connection.total_changes
        cursor.execute(f"INSERT INTO {FTS_TABLE}({FTS_TABLE}, rank) VALUES ('merge', %s)", [pages])
        changes: int = connection.connection.total_changes - before
    return changes > 1  # the statement itself counts as one


def _note_purged(erasures: int | None) -> None:
    """Entries that were erased meanwhile need another purge."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {ERASED_TABLE} WHERE count = %s", [erasures])
