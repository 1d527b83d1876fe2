"""Checkpoint: removes erased content from the write-ahead log of SQLite, too.

``secure_delete`` overwrites erased content in the database. The write-ahead log still has the pages
as they were, until its frames are copied into the database and the file is cut.
"""

import asyncio
from pathlib import Path

from django.conf import settings
from django.db import connection

from responses_app.database import database
from responses_app.eventlog.availability import wait_for_locks
from responses_app.eventlog.writer import LOCK_SECS
from responses_app.services.search.purge import purge_in_steps

PERIOD_SECS = 15.0  # several tries fit into the minute after which erased content is to be gone
PERIOD_SWEEPS = 15  # the same for servers that sweep more often
READER_SECS = 0.05  # the writer waits while a checkpoint waits for readers


async def checkpoint_forever() -> None:
    """Empty the write-ahead log again and again; where readers prevent it, at each sweep.

    A process may die right after it has erased: so this needs no cause, and begins at once.
    """
    if connection.vendor != "sqlite":
        return
    while True:
        await purge_in_steps()
        is_empty = _wal_bytes() == 0 or await database.read(truncate_wal)
        sweeps = PERIOD_SWEEPS if is_empty else 1
        await asyncio.sleep(min(PERIOD_SECS, sweeps * settings.HERMES_SWEEP_SECS))


def clean_files() -> None:
    """For a command that has erased content. A server that uses the files does it by itself."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        truncate_wal()


def truncate_wal() -> bool:
    """Move the whole write-ahead log into the database; False while a connection is in the way."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")  # most of the copying, beside the writer
        wait_for_locks(READER_SECS)
        try:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, _, _ = cursor.fetchone()
        finally:
            wait_for_locks(LOCK_SECS)
    return not is_busy


def _wal_bytes() -> int:
    try:
        return Path(f"{connection.settings_dict['NAME']}-wal").stat().st_size
    except FileNotFoundError:
        return 0
