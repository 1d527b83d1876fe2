"""The writer: one thread, one connection, every hot write of this process.

Jobs gather while a commit waits for the disk. Results reach their owners on the event loop, after it.
"""

import asyncio
import logging
import threading
import time
from functools import partial
from itertools import chain

from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from responses_app.eventlog.availability import (
    OUTAGE_ERRORS,
    current_transaction_id,
    is_lock_conflict,
    unavailable,
    wait_for_locks,
    was_committed,
)
from responses_app.eventlog.gathering import ALONE, Gathering
from responses_app.eventlog.inserting import is_stored
from responses_app.eventlog.jobs import (
    LOCK_WAIT_SECS,
    Append,
    CallFailed,
    Delivery,
    Job,
    Performed,
    Undecided,
    appends_of,
    calls_of,
    coalesced,
    deliver_all,
    is_one_statement,
    perform,
    pieces_of,
    refusal,
    size_of,
)
from responses_app.eventlog.postponed import Postponed
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.metrics import commit_seconds
from responses_app.models.statements import keep_thread_database
from responses_app.postgresql.threads import limit_waits

logger = logging.getLogger(__name__)

UNAVAILABLE = "The database takes no writes; they are kept and tried again"
RETRY_SECS = 0.25  # between tries while the database refuses to work
LOCK_SECS = 20.0  # another program may lock an SQLite file this long without an error here
PROBE_SECS = 0.5  # once the database is unavailable, fail fast
PENDING_BYTES = 8 * 1024 * 1024  # beyond this, producers wait for the disk


class Writer:
    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_running = False
        self._thread: threading.Thread | None = None
        self._jobs: list[Job] = []
        self._arrival = threading.Condition()
        self._gathering = Gathering(self._arrival)
        self.pace = ALONE
        self._is_stopping = False
        self._retained: list[Job] = []
        self.postponed = Postponed()
        self._undecided: Undecided | None = None
        self._has_begun = False
        self._is_limited = False  # whether each statement waits for locks only for a while
        self._is_unavailable = False
        self._stall: Exception | None = None  # why a part of the current batch was set aside
        self._unavailable_log = ThrottledLog(logger, UNAVAILABLE)
        self.pending_bytes = 0
        self.is_congested = False
        self._arrived_at = 0.0  # of the first job that waits; 0.0 if none does
        self._oldest_at = 0.0  # of the oldest job that was taken and is not committed

    @property
    def lag_secs(self) -> float:
        """How long the oldest write has waited for its commit."""
        since = self._oldest_arrival()
        return time.monotonic() - since if since else 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._gathering = Gathering(self._arrival)  # the timer of the old one is on another loop
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="event-log-writer", daemon=True)
        self._thread.start()
        self.is_running = True

    def stop(self) -> None:
        """Commit what is pending, then end the thread."""
        if self._thread is None:
            return
        with self._arrival:
            self._is_stopping = True
            self._gathering.end()
            self._arrival.notify()
        self._thread.join()
        self._thread = None
        self.is_running = False

    def submit(self, job: Job) -> None:
        with self._arrival:
            if not self._jobs:
                self._arrived_at = time.monotonic()
            self._jobs.append(job)
            if isinstance(job, Append):
                self.pending_bytes += job.segment.size
                self.is_congested = self.pending_bytes > PENDING_BYTES
            if self._gathering.wakes(job, self.pending_bytes, self.loop):
                self._arrival.notify()

    # -- in the thread ------------------------------------------------------------------
    def _run(self) -> None:
        keep_thread_database()
        self._is_limited = limit_waits(may_probe=True, lock_wait_secs=LOCK_WAIT_SECS)
        try:
            while (jobs := self._next_batch()) is not None:
                self._deliver(self._commit_safely(jobs))
                if self._retained or self._undecided:
                    time.sleep(RETRY_SECS)
                    continue
                if self.postponed.has_jobs:
                    self._deliver(self._retry_postponed())
                is_busy = self._gathering.is_due or len(jobs) >= self.pace.busy_jobs
                if is_busy and not self._is_stopping:
                    self._gathering.pause(jobs, self._jobs, self.pace)
        finally:
            connections.close_all()

    def _next_batch(self) -> list[Job] | None:
        """Everything that may be tried now; None when the writer stops and nothing is left."""
        with self._arrival:
            while (pause := self._idle_secs()) != 0:
                self._arrival.wait(pause)
            arrived = self._jobs
            self._jobs = []
            self._gathering.take()
            self._oldest_at = self._oldest_arrival()
            self._arrived_at = 0.0
        # What was tried before stays as it was: a lost commit may have stored just these rows.
        jobs = self._retained
        self._retained = []
        if self.postponed.has_jobs:
            jobs += self.postponed.take_appends()
        new = coalesced(arrived)
        if self.postponed.has_jobs:
            new = self.postponed.add_held(new)
        jobs += new
        has_work = bool(jobs) or self._undecided is not None or self.postponed.has_jobs
        if self._is_stopping and not has_work:
            return None
        return jobs

    def _oldest_arrival(self) -> float:
        """When the oldest write that is not committed arrived; 0.0 when there is none."""
        times = [self._oldest_at, self._arrived_at]
        if self.postponed.has_jobs:
            times.append(self.postponed.oldest_at)
        return min(filter(None, times), default=0.0)

    def _idle_secs(self) -> float | None:
        """How long there is nothing to do; None means until a job arrives."""
        if self._gathering.is_due or self._retained or self._undecided:
            return 0
        if self.postponed.has_jobs and (due_at := self.postponed.next_due()) is not None:
            return max(0.0, due_at - time.monotonic())
        return 0 if self._is_stopping else None

    def _commit_safely(self, jobs: list[Job]) -> list[Delivery]:
        """Every job gets a result and the thread goes on, also after an unexpected error."""
        decided: list[Delivery] = []
        try:
            if (undecided := self._undecided) is not None:
                is_committed = was_committed(undecided.transaction_id)
                if is_committed is None:
                    return self._set_aside(jobs, ConnectionError("it has not come back"))
                self._undecided = None
                if is_committed:
                    decided = undecided.deliveries
                else:
                    jobs = undecided.jobs + jobs
            return decided + self._commit(jobs)
        except Exception as error:
            logger.exception("A batch of %d writes failed unexpectedly.", len(jobs))
            self._retained = []
            return decided + [refusal(job, error) for job in jobs]

    def _commit(self, jobs: list[Job]) -> list[Delivery]:
        """One transaction for all; if it fails, smaller ones, so that one bad job fails alone."""
        if not jobs:
            return []
        try:
            return self._transact(jobs)
        except CallFailed:  # now each call has a savepoint
            return self._commit(jobs)
        except Exception as error:
            if isinstance(error, DatabaseError) and not self._has_begun:
                # Each of them alone would fail too, after the same wait.
                return self._set_aside(jobs, error)
            if is_lock_conflict(error) and (len(jobs) == 1 or not calls_of(jobs)):
                self.postponed.add_all(jobs)
                return []
            if len(jobs) == 1:
                return self._fail_alone(jobs[0], error)
            if not isinstance(error, OUTAGE_ERRORS):
                cause = type(error).__name__
                logger.warning("A batch of %d writes failed (%s); trying each.", len(jobs), cause)
            return self._commit_in_pieces(pieces_of(jobs, error))

    def _transact(self, jobs: list[Job]) -> list[Delivery]:
        """One transaction. Raises if nothing of it is stored; keeps it as undecided if that is unknown."""
        self._has_begun = False
        performed = Performed()
        transaction_id: int | None = None
        if self._is_unavailable:
            # A connection that failed is replaced by one that waits as long as usual.
            wait_for_locks(PROBE_SECS)
        try:
            with commit_seconds.time():
                if self._is_limited and is_one_statement(jobs):
                    connection.ensure_connection()
                    self._has_begun = True
                    performed = perform(jobs)
                else:
                    with transaction.atomic():
                        self._has_begun = True
                        performed = perform(jobs)
                        if connection.vendor == "postgresql":
                            transaction_id = current_transaction_id()
        except DatabaseError as error:
            connection.close_if_unusable_or_obsolete()
            is_outage = isinstance(error, OUTAGE_ERRORS) and not is_lock_conflict(error)
            if transaction_id is None or not is_outage:
                raise
            self._unavailable_log.error(error)
            tried = [job for job in jobs if job not in performed.blocked]
            self._undecided = Undecided(tried, performed.deliveries, transaction_id)
            self.postponed.add_all(performed.blocked)
            return []
        if self._is_unavailable:
            logger.warning("The database takes writes again.")
            self._is_unavailable = False
            wait_for_locks(LOCK_SECS)
        self.postponed.add_all(performed.blocked)
        return performed.deliveries

    def _commit_in_pieces(self, pieces: list[list[Job]]) -> list[Delivery]:
        """During an outage nothing after the first failure is tried: nothing overtakes it."""
        deliveries: list[Delivery] = []
        self._stall = None
        for number, piece in enumerate(pieces):
            if self._undecided is not None:
                self._stall = ConnectionError("the connection broke")
            if self._stall is not None:
                rest = list(chain.from_iterable(pieces[number:]))
                return deliveries + self._set_aside(rest, self._stall)
            deliveries += self._commit(self.postponed.add_held(piece))
        return deliveries

    def _set_aside(self, jobs: list[Job], error: Exception) -> list[Delivery]:
        """The database is unavailable: appends stay for the next batch, in order; callers get a 503."""
        self._unavailable_log.error(error)
        self._is_unavailable = True
        self._stall = error
        self._retained += appends_of(jobs)
        return [refusal(call, unavailable(error)) for call in calls_of(jobs)]

    def _retry_postponed(self) -> list[Delivery]:
        locked = unavailable(TimeoutError("another session has locked the rows of this write"))
        deliveries = [refusal(call, locked) for call in self.postponed.take_expired()]
        call = self.postponed.take_call()
        if call is not None:
            deliveries += self._commit_safely([call])
        return deliveries

    def _fail_alone(self, job: Job, error: Exception) -> list[Delivery]:
        if isinstance(error, OUTAGE_ERRORS):
            return self._set_aside([job], error)
        if isinstance(job, Append) and isinstance(error, IntegrityError) and is_stored(job.segment):
            return [partial(job.on_written, job.segment)]  # the connection broke after its commit
        return [refusal(job, error)]

    def _deliver(self, deliveries: list[Delivery]) -> None:
        assert self.loop is not None
        with self._arrival:
            self.pending_bytes = size_of(self._retained + self._jobs)
            if self.postponed.has_jobs:
                self.pending_bytes += self.postponed.size
            self.is_congested = self.pending_bytes > PENDING_BYTES
            if not (self._retained or self._undecided):
                self._oldest_at = 0.0
        if deliveries and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(deliver_all, deliveries)
