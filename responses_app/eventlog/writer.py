"""The writer: one thread, one connection, every hot write of this process.

Group commit comes by itself: while one commit waits for the disk, jobs gather, and the next
commit takes them all. Results reach their owners on the event loop, after the commit.
"""

import asyncio
import logging
import threading
import time
from itertools import groupby

from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from responses_app.eventlog.availability import AWAY, take_receipt, unavailable, wait_for_locks, was_committed
from responses_app.eventlog.complaints import Complaint
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.jobs import Append, Call, Delivery, Fenced, Job, Undecided, coalesced, refusal, success
from responses_app.eventlog.segments import Segment, stamped
from responses_app.metrics import commit_seconds
from responses_app.models import EventSegment

logger = logging.getLogger(__name__)

BUSY_JOBS = 8  # below this a batch is committed at once; above, waiting a little makes fewer, larger ones
TICK_SECS = 0.005
RETRY_SECS = 0.25  # between tries while the database refuses to work
LOCK_SECS = 20.0  # as long another program may hold an SQLite file, and nobody notices
PROBE_SECS = 0.5  # once it was longer: whoever comes now is told at once
PENDING_BYTES = 8 * 1024 * 1024  # beyond this, producers wait for the disk


class Writer:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: list[Job] = []
        self._arrival = threading.Condition()
        self._is_stopping = False
        self._retained: list[Job] = []
        self._undecided: Undecided | None = None
        self._has_begun = False
        self._is_away = False
        self._away = Complaint(logger, "The database takes no writes; they are kept and tried again")
        self.pending_bytes = 0
        self._arrived_at = self._oldest_at = 0.0  # of the first job that waits, and of the oldest that was taken

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def is_congested(self) -> bool:
        return self.pending_bytes > PENDING_BYTES

    @property
    def lag_secs(self) -> float:
        """How long the oldest write has waited for its commit."""
        since = self._oldest_at or (self._arrived_at if self._jobs else 0.0)
        return time.monotonic() - since if since else 0.0

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
            if not self._jobs:
                self._arrived_at = time.monotonic()
            self._jobs.append(job)
            if isinstance(job, Append):
                self.pending_bytes += len(job.segment.data)
            self._arrival.notify()

    # -- in the thread ------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while (jobs := self._next_batch()) is not None:
                self._deliver(self._commit_safely(jobs))
                if self._retained or self._undecided:
                    time.sleep(RETRY_SECS)
                elif len(jobs) >= BUSY_JOBS:
                    time.sleep(TICK_SECS)
        finally:
            connections.close_all()

    def _next_batch(self) -> list[Job] | None:
        with self._arrival:
            while not (self._jobs or self._retained or self._undecided or self._is_stopping):
                self._arrival.wait()
            arrived, self._jobs = self._jobs, []
            if arrived:
                self._oldest_at = self._oldest_at or self._arrived_at
        # What was tried before stays as it was: a lost commit may have stored just these rows.
        jobs, self._retained = self._retained + coalesced(arrived), []
        return jobs if jobs or self._undecided else None

    def _commit_safely(self, jobs: list[Job]) -> list[Delivery]:
        """Whatever happens, everybody gets an answer and the thread goes on."""
        try:
            return self._commit(jobs)
        except Exception as error:
            logger.exception("A batch of %d writes failed unexpectedly.", len(jobs))
            self._retained, self._undecided = [], None
            return [refusal(job, error) for job in jobs]

    def _commit(self, jobs: list[Job]) -> list[Delivery]:
        decided: list[Delivery] = []
        if (undecided := self._undecided) is not None:
            is_stored = was_committed(undecided.receipt)
            if is_stored is None:
                return self._set_aside(jobs, ConnectionError("it has not come back"))
            self._undecided = None
            if is_stored:
                decided = undecided.deliveries
            else:
                jobs = undecided.jobs + jobs
        try:
            return decided + self._transact(jobs)
        except DatabaseError as error:
            if not self._has_begun:  # so would each of them alone, after the same wait
                return decided + self._set_aside(jobs, error)
            if not isinstance(error, AWAY):
                logger.warning("A batch of %d writes failed (%s); writing them one by one.", len(jobs), error)
            return decided + self._commit_one_by_one(jobs)

    def _transact(self, jobs: list[Job]) -> list[Delivery]:
        """One transaction. Raises when nothing of it is stored; when nobody knows, it is kept to be asked about."""
        self._has_begun = False
        deliveries: list[Delivery] = []
        receipt: int | None = None
        if self._is_away:
            wait_for_locks(PROBE_SECS)  # a connection that failed is replaced by one with the patience of all
        try:
            with commit_seconds.time(), transaction.atomic():
                self._has_begun = True
                deliveries = self._perform(jobs)
                receipt = take_receipt()
        except DatabaseError as error:
            connection.close_if_unusable_or_obsolete()
            if receipt is None or not isinstance(error, AWAY):
                raise
            self._away.say(error)
            self._undecided = Undecided(jobs, deliveries, receipt)
            return []
        if self._is_away:
            logger.warning("The database takes writes again.")
            self._is_away = False
            wait_for_locks(LOCK_SECS)
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
        except AWAY:
            raise  # the connection or the disk, not this job: the batch as a whole decides
        except Exception as error:  # the caller's own failure travels to the caller
            return refusal(job, error)
        return success(job, result)

    def _commit_one_by_one(self, jobs: list[Job]) -> list[Delivery]:
        """So that one bad job fails alone.

        When the database itself is unavailable, nothing behind the first failure is tried: a later
        write must not overtake an earlier one.
        """
        deliveries: list[Delivery] = []
        for number, job in enumerate(jobs):
            try:
                deliveries += self._transact([job])
            except AWAY as error:
                return deliveries + self._set_aside(jobs[number:], error)
            except DatabaseError as error:
                deliveries.append(self._settle_alone(job, error))
            if self._undecided is not None:
                return deliveries + self._set_aside(jobs[number + 1 :], ConnectionError("the connection broke"))
        return deliveries

    def _set_aside(self, jobs: list[Job], error: Exception) -> list[Delivery]:
        """Appends are kept for the next round, in order; callers are told to come back."""
        self._away.say(error)
        self._is_away = True
        self._retained = [job for job in jobs if isinstance(job, Append)]
        return [refusal(job, unavailable(error)) for job in jobs if isinstance(job, Call)]

    def _settle_alone(self, job: Job, error: DatabaseError) -> Delivery:
        if isinstance(job, Append) and isinstance(error, IntegrityError) and _is_stored(job.segment):
            return lambda: job.on_written(job.segment)  # the connection broke after its commit had worked
        return refusal(job, error)

    def _deliver(self, deliveries: list[Delivery]) -> None:
        assert self._loop is not None
        retained = sum(len(job.segment.data) for job in self._retained if isinstance(job, Append))
        with self._arrival:
            waiting = sum(len(job.segment.data) for job in self._jobs if isinstance(job, Append))
            self.pending_bytes = retained + waiting
            if not (self._retained or self._undecided):
                self._oldest_at = 0.0
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


def _append(jobs: list[Append]) -> list[Delivery]:
    for job in jobs:
        job.segment = stamped(job.segment)
    stored = insert_fenced([job.segment for job in jobs])
    return [_outcome(job, stored) for job in jobs]


def _is_stored(segment: Segment) -> bool:
    rows = EventSegment.objects.filter(response_id=segment.response_id, first_position=segment.first_position)
    return any(row.attempt == segment.attempt and bytes(row.frames) == segment.data for row in rows)
