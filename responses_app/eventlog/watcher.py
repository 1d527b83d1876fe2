"""The watcher: one query per second for all logs that are read here and written by other processes.

It also stores, with the same period, which responses were read. It runs only while there is
something to watch or to store.
"""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import connection
from django.utils import timezone

from responses_app.database import Database
from responses_app.eventlog.positions import newest_positions
from responses_app.eventlog.remote_logs import RemoteLogs
from responses_app.eventlog.tails import Tail
from responses_app.models import Response
from responses_app.protocol.errors import StorageUnavailable

logger = logging.getLogger(__name__)

READER_NOTE_SECS = 30.0
NOTE_TRIES = 5  # for a row that another transaction holds, or that was deleted


def note_secs() -> float:
    """Often enough that a response with a reader never counts as unattended."""
    limit_secs = 60 * settings.HERMES_UNATTENDED_MINUTES
    if not limit_secs:
        return READER_NOTE_SECS
    return min(READER_NOTE_SECS, limit_secs / 3)


class AccessNotes:
    """Which responses were read lately, and when. Any thread adds, the watcher takes.

    Notes are written later and together. With the time of the write they would all be equally new,
    and newer than a response that ended meanwhile: eviction by use would remove the wrong ones.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tries: dict[str, int] = {}
        self._times: dict[str, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._tries)

    def add(self, response_ids: Iterable[str]) -> None:
        now = timezone.now()
        with self._lock:
            for response_id in response_ids:
                self._tries[response_id] = NOTE_TRIES
                self._times[response_id] = now

    def take(self) -> tuple[dict[str, int], dict[str, datetime]]:
        with self._lock:
            tries, times = self._tries, self._times
            self._tries, self._times = {}, {}
        return tries, times

    def put_back(self, missed: dict[str, int], times: dict[str, datetime]) -> None:
        """Notes that could not be written; a newer note of the same response stays as it is."""
        with self._lock:
            for response_id, tries in missed.items():
                if tries > 1 and response_id not in self._tries:
                    self._tries[response_id] = tries - 1
                    self._times[response_id] = times[response_id]


class Watcher:
    def __init__(self, database: Database, remote_logs: RemoteLogs) -> None:
        self._database = database
        self._remote_logs = remote_logs
        self._tails: dict[str, Tail] = {}
        self._retrying: set[Tail] = set()
        self._notes = AccessNotes()
        self._next_notes_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @contextmanager
    def watching(self, response_id: str, tail: Tail) -> Iterator[None]:
        """For as long as the block lasts, the tail is woken when its log has new events."""
        if tail.is_volatile:  # this process has its whole log
            yield
            return
        self._tails[response_id] = tail
        self._ensure_running()
        try:
            yield
        finally:
            if not _has_just_ended(tail):
                self._notes.add([response_id])
            if not tail.readers:
                self._tails.pop(response_id, None)

    def retry(self, tail: Tail) -> None:
        """A reader could not read: wake it when the database answers again."""
        self._retrying.add(tail)

    def note(self, response_id: str, loop: asyncio.AbstractEventLoop) -> None:
        """A response was read; from any thread."""
        self._notes.add([response_id])
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._ensure_running)

    async def close(self, timeout_secs: float) -> None:
        """Write the last notes, unless that takes too long."""
        if self._task is not None:
            self._task.cancel()
        if self._notes or self._writing is not None:
            self._begin_writing()
            assert self._writing is not None
            await asyncio.wait({self._writing}, timeout=timeout_secs)

    def _ensure_running(self) -> None:
        if self._task is None:
            # A fresh context: the context variables of a request must not stay alive here.
            self._task = asyncio.get_running_loop().create_task(
                self._run(), context=contextvars.Context()
            )

    async def _run(self) -> None:
        try:
            while self._tails or self._notes:
                await asyncio.sleep(settings.HERMES_POLL_SECS)
                await self.step()
        finally:
            self._task = None

    async def step(self) -> None:
        self._note_readers()
        self._begin_writing()
        try:
            await self._wake_tails()
        except StorageUnavailable as error:
            self._database.unavailable_log.error(error)
        except Exception:  # without the watcher, readers would wait for ever
            logger.exception("The watched logs could not be queried.")

    def _note_readers(self) -> None:
        """Note the readers of logs that another process writes, which ends what has no reader.

        Each note rewrites a row with its whole request, so notes are rare. A response that runs
        here is not evicted, and its end sets ``accessed_at``.
        """
        now = time.monotonic()
        if now < self._next_notes_at:
            return
        self._next_notes_at = now + note_secs()
        written_elsewhere: list[str] = []
        for response_id, tail in self._tails.items():
            if not tail.is_written_here:
                written_elsewhere.append(response_id)
        self._notes.add(written_elsewhere)

    async def _wake_tails(self) -> None:
        retrying = set(self._retrying)
        watched: dict[str, Tail] = {}
        for response_id, tail in self._tails.items():
            if not tail.is_written_here or tail in retrying:
                watched[response_id] = tail
        if not watched:
            self._retrying.clear()
            return
        newest = await self._database.read(newest_positions, list(watched))
        self._remote_logs.note(newest)
        for response_id, tail in watched.items():
            if response_id not in newest:
                tail.note_erased()
        self._retrying -= retrying
        for tail in retrying:
            tail.wake()

    def _begin_writing(self) -> None:
        """In a task of its own: a database that takes no writes can still be read."""
        if self._notes and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(
                self._write(), context=contextvars.Context()
            )

    async def _write(self) -> None:
        taken, times = self._notes.take()
        written: list[str] = []
        try:
            written = await self._write_notes(sorted(taken), times)
        except StorageUnavailable as error:
            self._database.unavailable_log.error(error)
        except Exception:
            logger.exception("Access notes could not be written.")
        finally:
            self._writing = None
            for response_id in written:
                taken.pop(response_id, None)
            self._notes.put_back(taken, times)

    async def _write_notes(self, response_ids: list[str], times: dict[str, datetime]) -> list[str]:
        """On PostgreSQL apart from the writer: a transaction of its own blocks no append."""
        note_access = Response.objects.note_access
        if connection.vendor == "sqlite":
            return await self._database.write(partial(note_access, response_ids, times))
        return await self._database.read(note_access, response_ids, times)


def _has_just_ended(tail: Tail) -> bool:
    """The end, which this process stored, is the time of its last use."""
    newest = tail.newest
    if newest is None or not newest.is_final:
        return False
    return time.time() - newest.committed_at < settings.HERMES_POLL_SECS
