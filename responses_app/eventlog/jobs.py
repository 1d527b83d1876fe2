"""Jobs of the writer: appends and calls, and how one transaction performs a batch of them.

Appends come first, and this order is always valid. A producer waits for its own calls that write
its log (begin, settle) before it appends further, and nothing is appended after a settle: a turn
that settles has closed its tools and makes no more events. An append that was submitted before a
call stays before it. Other calls of a turn (the ledger, a claim) write no log that an append could
precede: a claim continues after the newest event that is stored when it runs.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from django.db import connection, transaction

from responses_app.eventlog.availability import OUTAGE_ERRORS, is_lock_conflict, limit_lock_waits
from responses_app.eventlog.inserting import STATEMENT_BYTES, insert_fenced
from responses_app.eventlog.segments import Segment, concatenated, stamped
from responses_app.models import Response
from responses_app.models.statements import thread_database
from responses_app.protocol.frame_pieces import LONG_BYTES

logger = logging.getLogger(__name__)

LOCK_WAIT_SECS = 0.1  # another process holds a row for one commit; meanwhile every write here waits
RETRY_LOCK_WAIT_SECS = 0.02  # for a call that met its lock before, and for those after it

Delivery = Callable[[], object]


class Fenced(Exception):
    """The response has ended or a newer attempt owns it; the caller stops writing."""


class CallFailed(Exception):
    """A call has failed without a savepoint: nothing of its batch can be committed with it."""


@dataclass(slots=True, eq=False)
class Append:
    segment: Segment
    on_written: Callable[[Segment], None]
    on_refused: Callable[[Exception], None]
    is_urgent: bool = True  # a reader waits for it
    blocked_at: float = 0.0  # when it first met a row that another session has locked
    due_at: float = 0.0  # when it is tried again

    @property
    def response_id(self) -> str:
        return self.segment.response_id


@dataclass(slots=True, eq=False)
class Call:
    work: Callable[[], Any]
    then: Callable[[Any], None] | None
    response_id: str = ""  # it never overtakes an append to this response
    blocked_at: float = 0.0
    due_at: float = 0.0
    needs_savepoint: bool = False  # a call of its batch has failed
    future: Future[Any] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # A caller that stops waiting can't take back what is about to be committed.
        self.future.set_running_or_notify_cancel()


Job = Append | Call


@dataclass
class Performed:
    """What to deliver after the commit, and the jobs whose rows another session has locked."""

    deliveries: list[Delivery] = field(default_factory=list)
    blocked: list[Job] = field(default_factory=list)


@dataclass(frozen=True)
class Undecided:
    """A transaction whose connection broke during COMMIT, and its deliveries if it was stored."""

    jobs: list[Job]
    deliveries: list[Delivery]
    transaction_id: int


# -- lists of jobs ----------------------------------------------------------------------
def appends_of(jobs: list[Job]) -> list[Append]:
    return [job for job in jobs if isinstance(job, Append)]


def calls_of(jobs: list[Job]) -> list[Call]:
    return [job for job in jobs if isinstance(job, Call)]


def size_of(jobs: list[Job]) -> int:
    """The bytes of their events."""
    return sum(job.segment.size for job in appends_of(jobs))


def coalesced(jobs: list[Job]) -> list[Job]:
    """Appends to one response become one segment, or several where they are long; the calls follow."""
    groups: dict[tuple[str, int], list[Append]] = {}
    calls: list[Job] = []
    for job in jobs:
        if isinstance(job, Append):
            segment = job.segment
            groups.setdefault((segment.response_id, segment.attempt), []).append(job)
        else:
            calls.append(job)
    merged: list[Job] = []
    for group in groups.values():
        if len(group) == 1:
            merged += group
        else:
            merged += _joined(group)
    return merged + calls


def _joined(group: list[Append]) -> list[Append]:
    """A reader takes a whole segment at once, and a fold too: long ones are not made longer."""
    joined: list[Append] = []
    run: list[Segment] = []
    size = 0
    for job in group:
        size += job.segment.size
        if run and size > LONG_BYTES:
            joined.append(replace(group[-1], segment=concatenated(run)))
            run = []
            size = job.segment.size
        run.append(job.segment)
    joined.append(replace(group[-1], segment=concatenated(run)))
    return joined


def pieces_of(jobs: list[Job], error: Exception) -> list[list[Job]]:
    """Each job alone. After a lock conflict the appends stay together: they wait for no row."""
    pieces: list[list[Job]] = []
    if is_lock_conflict(error):
        pieces.append(list(appends_of(jobs)))
    else:
        for append in appends_of(jobs):
            pieces.append([append])
    for call in calls_of(jobs):
        pieces.append([call])
    return pieces


# -- a batch ----------------------------------------------------------------------------
def is_one_statement(jobs: list[Job]) -> bool:
    """Whether PostgreSQL stores a batch by one statement, which needs no transaction around it.

    If the connection breaks then, the statement is tried again as it is, and finds the rows that it
    has stored. It waits for no locked response.
    """
    ids: set[str] = set()
    for job in jobs:
        if isinstance(job, Call):
            return False
        ids.add(job.segment.response_id)
    return len(ids) == len(jobs) and size_of(jobs) <= STATEMENT_BYTES


def perform(jobs: list[Job]) -> Performed:
    """All jobs in the transaction of the caller.

    Savepoints cost two statements for each call, and hardly any call fails. So a batch has none at
    first. If one of its calls fails, it is tried again with a savepoint for each.
    """
    performed = Performed()
    appends = appends_of(jobs)
    calls = calls_of(jobs)
    lock_wait_secs = LOCK_WAIT_SECS
    for call in calls:
        if call.blocked_at:
            lock_wait_secs = RETRY_LOCK_WAIT_SECS
    limit_lock_waits(lock_wait_secs)
    if appends:
        _append_all(appends, performed)
    waiting = {job.response_id for job in performed.blocked}
    for call in calls:
        if call.response_id in waiting:
            performed.blocked.append(call)
        elif call.needs_savepoint:
            _run(call, performed)
        else:
            _run_together(call, calls, performed)
    return performed


def _append_all(appends: list[Append], performed: Performed) -> None:
    """One statement for the first append of each response, one for those after them.

    A row that is locked is passed over, so that it keeps no other response waiting. The first
    statement holds the rows it found: none of them can be passed over in the second.
    """
    firsts: dict[str, Append] = {}
    others: list[Append] = []
    # In the same order in every process, so that two processes can't deadlock.
    for job in sorted(appends, key=attrgetter("segment.response_id")):
        if firsts.setdefault(job.segment.response_id, job) is not job:
            others.append(job)
    _append(list(firsts.values()), performed)
    if not others:
        return
    blocked = {job.response_id for job in performed.blocked}
    free: list[Append] = []
    for job in others:
        if job.response_id in blocked:
            performed.blocked.append(job)
        else:
            free.append(job)
    if free:
        _append(free, performed)


def _append(jobs: list[Append], performed: Performed) -> None:
    for job in jobs:
        job.segment = stamped(job.segment)
    stored = insert_fenced([job.segment for job in jobs], skip_locked=True)
    missing: list[Append] = []
    for job in jobs:
        if (job.segment.response_id, job.segment.first_position) in stored:
            performed.deliveries.append(partial(job.on_written, job.segment))
        else:
            missing.append(job)
    if not missing:
        return
    locked = _open_attempts(missing)
    for job in missing:
        if (job.response_id, job.segment.attempt) in locked:
            performed.blocked.append(job)
        else:
            performed.deliveries.append(refusal(job, Fenced(job.response_id)))


def _open_attempts(missing: list[Append]) -> set[tuple[str, int]]:
    """Responses that only a lock kept out: an end or a newer attempt is never taken back."""
    if not connection.features.has_select_for_update_skip_locked:
        return set()
    ids = {job.response_id for job in missing}
    return set(Response.objects.open().filter(pk__in=ids).values_list("pk", "attempt"))


def _run_together(call: Call, calls: list[Call], performed: Performed) -> None:
    try:
        with thread_database().wrap_database_errors:
            result = call.work()
    except Exception as error:
        if isinstance(error, OUTAGE_ERRORS) and not is_lock_conflict(error):
            raise  # the connection or the disk, not this job: the batch as a whole decides
        for other in calls:
            other.needs_savepoint = True
        raise CallFailed from error
    performed.deliveries.append(partial(_finish, call, result))


def _run(call: Call, performed: Performed) -> None:
    try:
        with transaction.atomic(), connection.wrap_database_errors:
            result = call.work()
    except OUTAGE_ERRORS as error:
        if not is_lock_conflict(error):
            raise  # the connection or the disk, not this job: the batch as a whole decides
        performed.blocked.append(call)
        limit_lock_waits(RETRY_LOCK_WAIT_SECS)
    except Exception as error:  # the caller's own failure goes to the caller
        performed.deliveries.append(refusal(call, error))
    else:
        performed.deliveries.append(partial(_finish, call, result))


# -- deliveries, on the event loop ------------------------------------------------------
def _finish(call: Call, result: Any) -> None:
    try:
        if call.then is not None:
            call.then(result)
    except Exception:  # the work is committed, and its caller waits for the result
        logger.exception("The callback of a committed write failed.")
    call.future.set_result(result)


def refusal(job: Job, error: Exception) -> Delivery:
    if isinstance(job, Append):
        return partial(job.on_refused, error)
    return partial(job.future.set_exception, error)


def deliver_all(deliveries: list[Delivery]) -> None:
    for deliver in deliveries:
        try:
            deliver()
        except Exception:  # one reader's failure must not keep the others asleep
            logger.exception("A committed write could not be delivered.")
