"""The writer: one thread, one connection, every hot write of this process.

Group commit comes by itself: while one commit waits for the disk, jobs gather, and the next
commit takes them all. Results reach their owners on the event loop, after the commit.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.db import DatabaseError, IntegrityError, connection, connections, transaction
from django.db.utils import InterfaceError, OperationalError

from responses_app.errors import StorageUnavailable
from responses_app.eventlog.segments import Segment, concatenated, insert_fenced
from responses_app.models import EventSegment

logger = logging.getLogger(__name__)

BUSY_JOBS = 8  # below this a batch is committed at once; above, waiting a little makes fewer, larger ones
TICK_SECS = 0.005
RETRY_SECS = 0.25  # between tries while the database refuses to work
PENDING_BYTES = 8 * 1024 * 1024  # beyond this, producers wait for the disk


class Fenced(Exception):
    """A newer attempt owns the response; whoever sees this stops writing."""


@dataclass(slots=True)
class Append:
    segment: Segment
    on_written: Callable[[Segment], None]
    on_refused: Callable[[Exception], None]


@dataclass(slots=True)
class Call:
    work: Callable[[], Any]
    then: Callable[[Any], None] | None
    future: Future[Any] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # A caller that stops waiting can't take back what is about to be committed.
        self.future.set_running_or_notify_cancel()


Job = Append | Call
Delivery = Callable[[], None]


class Writer:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: list[Job] = []
        self._arrival = threading.Condition()
        self._is_stopping = False
        self._retained: list[Job] = []
        self.pending_bytes = 0

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def is_congested(self) -> bool:
        return self.pending_bytes > PENDING_BYTES

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="event-log-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Commit what is pending, then end the thread."""
        if self._thread is None:
            return
        with self._arrival:
            self._is_stopping = True
            self._arrival.notify()
        self._thread.join()
        self._thread = None

    def submit(self, job: Job) -> None:
        with self._arrival:
            self._jobs.append(job)
            if isinstance(job, Append):
                self.pending_bytes += len(job.segment.data)
            self._arrival.notify()

    # -- in the thread ------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while (jobs := self._next_batch()) is not None:
                self._deliver(self._commit_safely(jobs))
                if self._retained:
                    time.sleep(RETRY_SECS)
                elif len(jobs) >= BUSY_JOBS:
                    time.sleep(TICK_SECS)
        finally:
            connections.close_all()

    def _next_batch(self) -> list[Job] | None:
        with self._arrival:
            while not (self._jobs or self._retained or self._is_stopping):
                self._arrival.wait()
            arrived, self._jobs = self._jobs, []
        # What was tried before stays as it was: a lost commit may have stored just these rows.
        jobs, self._retained = self._retained + _coalesced(arrived), []
        return jobs or None

    def _commit_safely(self, jobs: list[Job]) -> list[Delivery]:
        """Whatever happens, everybody gets an answer and the thread goes on."""
        try:
            return self._commit(jobs)
        except Exception as error:
            logger.exception("A batch of %d writes failed unexpectedly.", len(jobs))
            self._retained = []
            return [_refusal(job, error) for job in jobs]

    def _commit(self, jobs: list[Job]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        try:
            with transaction.atomic():
                deliveries = self._perform(jobs)
        except DatabaseError as error:
            logger.warning("A batch of %d writes failed (%s); writing them one by one.", len(jobs), error)
            is_lost_in_commit = bool(deliveries) and not connection.is_usable()
            connection.close_if_unusable_or_obsolete()
            if is_lost_in_commit:
                return self._set_aside(jobs, error)
            return self._commit_one_by_one(jobs)
        return deliveries

    def _perform(self, jobs: list[Job]) -> list[Delivery]:
        """All jobs in their order; neighbouring appends share one statement."""
        deliveries: list[Delivery] = []
        for is_append, group in groupby(jobs, lambda job: isinstance(job, Append)):
            if is_append:
                deliveries += _append([job for job in group if isinstance(job, Append)])
            else:
                deliveries += [self._call(job) for job in group if isinstance(job, Call)]
        return deliveries

    def _call(self, job: Call) -> Delivery:
        try:
            with transaction.atomic():
                result = job.work()
        except (OperationalError, InterfaceError):
            raise  # the connection or the disk, not this job: the batch as a whole decides
        except Exception as error:  # the caller's own failure travels to the caller
            return _refusal(job, error)
        return _success(job, result)

    def _commit_one_by_one(self, jobs: list[Job]) -> list[Delivery]:
        """So that one bad job fails alone.

        When the database itself is unavailable, nothing behind the first failure is tried: a later
        write must not overtake an earlier one.
        """
        deliveries: list[Delivery] = []
        for number, job in enumerate(jobs):
            try:
                with transaction.atomic():
                    performed = self._perform([job])
            except (OperationalError, InterfaceError) as error:
                connection.close_if_unusable_or_obsolete()
                return deliveries + self._set_aside(jobs[number:], error)
            except DatabaseError as error:
                performed = [self._settle_alone(job, error)]
            deliveries += performed  # only now: inside the block, its commit could still have failed
        return deliveries

    def _set_aside(self, jobs: list[Job], error: Exception) -> list[Delivery]:
        """Appends are kept for the next round, in order; callers are told to come back."""
        self._retained = [job for job in jobs if isinstance(job, Append)]
        unavailable = StorageUnavailable(f"The database is not available ({error}); try again in a moment.")
        return [_refusal(job, unavailable) for job in jobs if isinstance(job, Call)]

    def _settle_alone(self, job: Job, error: DatabaseError) -> Delivery:
        if isinstance(job, Append) and isinstance(error, IntegrityError) and _is_stored(job.segment):
            return lambda: job.on_written(job.segment)  # the connection broke after its commit had worked
        return _refusal(job, error)

    def _deliver(self, deliveries: list[Delivery]) -> None:
        assert self._loop is not None
        retained = sum(len(job.segment.data) for job in self._retained if isinstance(job, Append))
        with self._arrival:
            waiting = sum(len(job.segment.data) for job in self._jobs if isinstance(job, Append))
            self.pending_bytes = retained + waiting
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_deliver_all, deliveries)


def _deliver_all(deliveries: list[Delivery]) -> None:
    for deliver in deliveries:
        try:
            deliver()
        except Exception:  # one reader's trouble must not keep the others asleep
            logger.exception("A committed write could not be delivered.")


def _outcome(job: Append, stored: set[tuple[str, int]]) -> Delivery:
    segment = job.segment
    if (segment.response_id, segment.first_position) in stored:
        return lambda: job.on_written(segment)
    return lambda: job.on_refused(Fenced(segment.response_id))


def _success(job: Call, result: Any) -> Delivery:
    def deliver() -> None:
        if job.then is not None:
            job.then(result)
        job.future.set_result(result)

    return deliver


def _refusal(job: Job, error: Exception) -> Delivery:
    if isinstance(job, Append):
        return lambda: job.on_refused(error)
    return lambda: job.future.set_exception(error)


def _coalesced(jobs: list[Job]) -> list[Job]:
    """Appends to one response become one segment, unless a call stands between them."""
    groups: list[list[Job]] = []
    latest: dict[tuple[str, int], list[Job]] = {}
    for job in jobs:
        if isinstance(job, Call):
            latest.clear()
            groups.append([job])
            continue
        key = (job.segment.response_id, job.segment.attempt)
        if key in latest:
            latest[key].append(job)
        else:
            latest[key] = [job]
            groups.append(latest[key])
    return [_as_one(group) for group in groups]


def _as_one(group: list[Job]) -> Job:
    last = group[-1]
    if len(group) == 1 or isinstance(last, Call):
        return last
    segments = [job.segment for job in group if isinstance(job, Append)]
    return Append(concatenated(segments), last.on_written, last.on_refused)


def _append(jobs: list[Append]) -> list[Delivery]:
    stored = insert_fenced([job.segment for job in jobs])
    return [_outcome(job, stored) for job in jobs]


def _is_stored(segment: Segment) -> bool:
    rows = EventSegment.objects.filter(response_id=segment.response_id, first_position=segment.first_position)
    return any(row.attempt == segment.attempt and bytes(row.frames) == segment.data for row in rows)
