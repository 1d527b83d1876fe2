"""The writer: one thread, one connection, every hot write of this process.

Group commit comes by itself: while one commit waits for the disk, jobs gather, and the next
commit takes them all. Results reach their owners on the event loop, after the commit.
"""

import asyncio
import logging
import threading
import time

from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from responses_app.eventlog.availability import (
    AWAY,
    is_lock_conflict,
    take_receipt,
    unavailable,
    wait_for_locks,
    was_committed,
)
from responses_app.eventlog.batches import Performed, perform
from responses_app.eventlog.jobs import (
    Append,
    Delivery,
    Job,
    Undecided,
    appends_of,
    calls_of,
    coalesced,
    refusal,
    size_of,
)
from responses_app.eventlog.postponed import Postponed
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.metrics import commit_seconds
from responses_app.models import EventSegment
from responses_app.postgresql.threads import limit_waits

logger = logging.getLogger(__name__)

BUSY_JOBS = (
    8  # below this a batch is committed at once; above, waiting a little makes fewer, larger ones
)
TICK_SECS = 0.005
RETRY_SECS = 0.25  # between tries while the database refuses to work
LOCK_SECS = 20.0  # as long another program may hold an SQLite file, and nobody notices
PROBE_SECS = 0.5  # once it was longer: whoever comes now is told at once
PENDING_BYTES = 8 * 1024 * 1024  # beyond this, producers wait for the disk


class Writer:
    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: list[Job] = []
        self._arrival = threading.Condition()
        self._is_stopping = False
        self._retained: list[Job] = []
        self.postponed = Postponed()
        self._undecided: Undecided | None = None
        self._has_begun = False
        self._is_away = False
        self._stall: Exception | None = None  # why a part of the current batch was set aside
        self._away = ThrottledLog(
            logger, "The database takes no writes; they are kept and tried again"
        )
        self.pending_bytes = 0
        self._arrived_at = self._oldest_at = (
            0.0  # of the first job that waits, and of the oldest that was taken
        )

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def is_congested(self) -> bool:
        return self.pending_bytes > PENDING_BYTES

    @property
    def lag_secs(self) -> float:
        """How long the oldest write has waited for its commit."""
        arrived_at = self._arrived_at if self._jobs else 0.0
        since = _earliest([self._oldest_at, arrived_at, self.postponed.oldest_at])
        return time.monotonic() - since if since else 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
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
        limit_waits(may_probe=True)
        try:
            while (jobs := self._next_batch()) is not None:
                self._deliver(self._commit_safely(jobs))
                if self._retained or self._undecided:
                    time.sleep(RETRY_SECS)
                    continue
                self._deliver(self._retry_postponed())
                if len(jobs) >= BUSY_JOBS:
                    time.sleep(TICK_SECS)
        finally:
            connections.close_all()

    def _next_batch(self) -> list[Job] | None:
        with self._arrival:
            while (pause := self._idle_secs()) != 0:
                self._arrival.wait(pause)
            arrived, self._jobs = self._jobs, []
            began = [
                self._oldest_at,
                self._arrived_at if arrived else 0.0,
                self.postponed.oldest_at,
            ]
            self._oldest_at = _earliest(began)
        # What was tried before stays as it was: a lost commit may have stored just these rows.
        jobs, self._retained = self._retained + self.postponed.take_appends(), []
        for job in coalesced(arrived):
            if self.postponed.holds(job):
                self.postponed.add(job)
            else:
                jobs.append(job)
        is_over = self._is_stopping and not (jobs or self._undecided or self.postponed)
        return None if is_over else jobs

    def _idle_secs(self) -> float | None:
        """How long there is nothing to do; None means until a job arrives."""
        if self._jobs or self._retained or self._undecided:
            return 0
        due_at = self.postponed.next_due()
        if due_at is None:
            return 0 if self._is_stopping else None
        return max(0.0, due_at - time.monotonic())

    def _commit_safely(self, jobs: list[Job]) -> list[Delivery]:
        """Whatever happens, every job gets an answer and the thread goes on."""
        decided: list[Delivery] = []
        try:
            if (undecided := self._undecided) is not None:
                is_stored = was_committed(undecided.receipt)
                if is_stored is None:
                    return self._set_aside(jobs, ConnectionError("it has not come back"))
                self._undecided = None
                if is_stored:
                    decided = undecided.deliveries
                else:
                    jobs = undecided.jobs + jobs
            return decided + self._commit(jobs)
        except Exception as error:
            logger.exception("A batch of %d writes failed unexpectedly.", len(jobs))
            self._retained = []
            return decided + [refusal(job, error) for job in jobs]

    def _commit(self, jobs: list[Job]) -> list[Delivery]:
        """One transaction for all; where it fails, smaller ones, so that one bad job fails alone."""
        if not jobs:
            return []
        try:
            return self._transact(jobs)
        except Exception as error:
            if isinstance(error, DatabaseError) and not self._has_begun:
                return self._set_aside(
                    jobs, error
                )  # so would each of them alone, after the same wait
            if is_lock_conflict(error) and (len(jobs) == 1 or not calls_of(jobs)):
                return self._postpone(jobs)
            if len(jobs) == 1:
                return self._fail_alone(jobs[0], error)
            if not isinstance(error, AWAY):
                cause = type(error).__name__
                logger.warning("A batch of %d writes failed (%s); trying each.", len(jobs), cause)
            return self._commit_in_pieces(_pieces(jobs, error))

    def _transact(self, jobs: list[Job]) -> list[Delivery]:
        """One transaction. Raises when nothing of it is stored; while that is unknown, it is kept as undecided."""
        self._has_begun = False
        performed = Performed()
        receipt: int | None = None
        if self._is_away:
            wait_for_locks(
                PROBE_SECS
            )  # a connection that failed is replaced by one with the patience of all
        try:
            with commit_seconds.time(), transaction.atomic():
                self._has_begun = True
                performed = perform(jobs)
                receipt = take_receipt()
        except DatabaseError as error:
            connection.close_if_unusable_or_obsolete()
            if receipt is None or not isinstance(error, AWAY) or is_lock_conflict(error):
                raise
            self._away.error(error)
            tried = [job for job in jobs if job not in performed.blocked]
            self._undecided = Undecided(tried, performed.deliveries, receipt)
            return self._postpone(performed.blocked)
        if self._is_away:
            logger.warning("The database takes writes again.")
            self._is_away = False
            wait_for_locks(LOCK_SECS)
        return performed.deliveries + self._postpone(performed.blocked)

    def _commit_in_pieces(self, pieces: list[list[Job]]) -> list[Delivery]:
        """When the database is away, nothing behind the first failure is tried: nothing overtakes it."""
        deliveries: list[Delivery] = []
        self._stall = None
        for number, piece in enumerate(pieces):
            if self._undecided is not None:
                self._stall = ConnectionError("the connection broke")
            if self._stall is not None:
                rest = [job for later in pieces[number:] for job in later]
                return deliveries + self._set_aside(rest, self._stall)
            held = [job for job in piece if self.postponed.holds(job)]
            deliveries += self._postpone(held)
            deliveries += self._commit([job for job in piece if job not in held])
        return deliveries

    def _set_aside(self, jobs: list[Job], error: Exception) -> list[Delivery]:
        """The database is away: appends are kept for the next round, in order; callers get a 503."""
        self._away.error(error)
        self._is_away = True
        self._stall = error
        self._retained += appends_of(jobs)
        return [refusal(job, unavailable(error)) for job in calls_of(jobs)]

    def _postpone(self, jobs: list[Job]) -> list[Delivery]:
        """Another session has locked their rows: they wait by themselves, and their callers with them."""
        for job in jobs:
            self.postponed.add(job)
        return []

    def _retry_postponed(self) -> list[Delivery]:
        locked = unavailable(TimeoutError("another session has locked the rows of this write"))
        deliveries = [refusal(call, locked) for call in self.postponed.take_expired()]
        call = self.postponed.take_call()
        if call is not None:
            deliveries += self._commit_safely([call])
        return deliveries

    def _fail_alone(self, job: Job, error: Exception) -> list[Delivery]:
        if isinstance(error, AWAY):
            return self._set_aside([job], error)
        if (
            isinstance(job, Append)
            and isinstance(error, IntegrityError)
            and _is_stored(job.segment)
        ):
            return [
                lambda: job.on_written(job.segment)
            ]  # the connection broke after its commit had worked
        return [refusal(job, error)]

    def _deliver(self, deliveries: list[Delivery]) -> None:
        assert self.loop is not None
        with self._arrival:
            self.pending_bytes = size_of(self._retained) + size_of(self._jobs) + self.postponed.size
            if not (self._retained or self._undecided):
                self._oldest_at = 0.0
        if deliveries and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(_deliver_all, deliveries)


def _earliest(times: list[float]) -> float:
    """Of those that are known; 0.0 when none is."""
    return min(filter(None, times), default=0.0)


def _pieces(jobs: list[Job], error: Exception) -> list[list[Job]]:
    """Each job alone; where a lock is to blame, the appends together, for they wait for no row."""
    appends: list[Job] = list(appends_of(jobs))
    calls: list[list[Job]] = [[call] for call in calls_of(jobs)]
    if is_lock_conflict(error):
        return [appends, *calls]
    return [*([job] for job in appends), *calls]


def _deliver_all(deliveries: list[Delivery]) -> None:
    for deliver in deliveries:
        try:
            deliver()
        except Exception:  # one reader's trouble must not keep the others asleep
            logger.exception("A committed write could not be delivered.")


def _is_stored(segment: Segment) -> bool:
    rows = EventSegment.objects.filter(
        response_id=segment.response_id, first_position=segment.first_position
    )
    return any(row.attempt == segment.attempt and bytes(row.frames) == segment.data for row in rows)
