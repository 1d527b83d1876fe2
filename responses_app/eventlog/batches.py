"""A batch: the jobs of one transaction, appends first.

The order is always valid. A producer waits for its own calls that write its log (begin, settle)
before it appends further, and nothing is appended behind them: a turn that settles has closed its
tools and numbers nothing more. An append that was submitted before a call stays before it. Other
calls of a turn (the ledger, a claim) write no log that an append could precede: a claim counts on
from whatever is stored when it runs.
"""

from dataclasses import dataclass, field

from django.db import connection, transaction

from responses_app.eventlog.availability import AWAY, is_lock_conflict, limit_lock_waits
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.jobs import (
    Append,
    Call,
    Delivery,
    Fenced,
    Job,
    appends_of,
    calls_of,
    refusal,
    success,
)
from responses_app.eventlog.segments import stamped
from responses_app.models import Response

LOCK_WAIT_SECS = (
    0.1  # another process holds a row for one commit; longer, and everything here waits
)
HURRIED_LOCK_WAIT_SECS = 0.02  # of a call that met its lock before, and of those behind it


@dataclass
class Performed:
    """What to deliver after the commit, and the jobs whose rows another session has locked."""

    deliveries: list[Delivery] = field(default_factory=list)
    blocked: list[Job] = field(default_factory=list)


def perform(jobs: list[Job]) -> Performed:
    """All jobs in the transaction of the caller; each call in a savepoint of its own."""
    performed = Performed()
    is_retry = any(call.blocked_at for call in calls_of(jobs))
    limit_lock_waits(HURRIED_LOCK_WAIT_SECS if is_retry else LOCK_WAIT_SECS)
    appends = sorted(appends_of(jobs), key=_response_id)
    if appends:
        _append_all(appends, performed)
    waiting = {job.response_id for job in performed.blocked}
    for call in calls_of(jobs):
        if call.response_id in waiting:
            performed.blocked.append(call)
        else:
            _run(call, performed)
    return performed


def _response_id(job: Append) -> str:
    return job.response_id


def _append_all(appends: list[Append], performed: Performed) -> None:
    """One statement for the first append of each response, one for what follows them.

    A row that is locked is passed over, so that it keeps no other response waiting. The first
    statement holds the rows it found: none of them can be passed over in the second.
    """
    firsts: dict[str, Append] = {}
    for job in appends:
        firsts.setdefault(job.response_id, job)
    _append(list(firsts.values()), performed)
    blocked = {job.response_id for job in performed.blocked}
    others = [job for job in appends if job is not firsts[job.response_id]]
    performed.blocked += [job for job in others if job.response_id in blocked]
    free = [job for job in others if job.response_id not in blocked]
    if free:
        _append(free, performed)


def _append(jobs: list[Append], performed: Performed) -> None:
    for job in jobs:
        job.segment = stamped(job.segment)
    stored = insert_fenced([job.segment for job in jobs], skip_locked=True)
    missing: list[Append] = []
    for job in jobs:
        if (job.response_id, job.segment.first_position) in stored:
            performed.deliveries.append(_written(job))
        else:
            missing.append(job)
    appendable = _appendable(missing)
    for job in missing:
        if (job.response_id, job.segment.attempt) in appendable:
            performed.blocked.append(job)
        else:
            performed.deliveries.append(refusal(job, Fenced(job.response_id)))


def _written(job: Append) -> Delivery:
    return lambda: job.on_written(job.segment)


def _appendable(missing: list[Append]) -> set[tuple[str, int]]:
    """Those that only a lock kept out: an end or a newer attempt is never taken back."""
    if not missing or not connection.features.has_select_for_update_skip_locked:
        return set()
    ids = {job.response_id for job in missing}
    return set(Response.objects.open().filter(pk__in=ids).values_list("pk", "attempt"))


def _run(call: Call, performed: Performed) -> None:
    try:
        with transaction.atomic():
            result = call.work()
    except AWAY as error:
        if not is_lock_conflict(error):
            raise  # the connection or the disk, not this job: the batch as a whole decides
        performed.blocked.append(call)
        limit_lock_waits(HURRIED_LOCK_WAIT_SECS)
    except Exception as error:  # the caller's own failure travels to the caller
        performed.deliveries.append(refusal(call, error))
    else:
        performed.deliveries.append(success(call, result))
