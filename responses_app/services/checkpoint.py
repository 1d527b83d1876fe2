"""Checkpoint: what was erased leaves the write-ahead log of SQLite, too.

``secure_delete`` overwrites erased content in the database. The write-ahead log still has the pages as they
were, until its frames are copied into the database and the file is cut.
"""

import time
from pathlib import Path

from django.conf import settings
from django.db import connection

from responses_app.eventlog import event_store
from responses_app.eventlog.availability import wait_for_locks
from responses_app.eventlog.writer import LOCK_SECS

PERIOD_SECS = 15.0  # several tries fit into the minute after which erased content is promised to be gone
PERIOD_SWEEPS = 15  # the same for servers that sweep more often
READER_SECS = 0.05  # the writer waits while a checkpoint waits for readers


class Checkpoints:
    """A truncating checkpoint from time to time; one that readers keep from ending is tried at each step."""

    def __init__(self) -> None:
        self._next = 0.0  # the first at once: another process may have died with erased content in the log

    async def step(self) -> None:
        if time.monotonic() < self._next or connection.vendor != "sqlite":
            return
        if _wal_bytes() == 0 or await event_store.read(truncate_wal):
            period = min(PERIOD_SECS, PERIOD_SWEEPS * settings.HERMES_SWEEP_SECS)
            self._next = time.monotonic() + period


def truncate_wal() -> bool:
    """Move the whole write-ahead log into the database; False while another connection is in the way."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")  # does most of the copying beside the writer
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
