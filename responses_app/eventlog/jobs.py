"""What the writer is asked to do, and how each job gets its answer."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from responses_app.eventlog.segments import Segment, concatenated

logger = logging.getLogger(__name__)


class Fenced(Exception):
    """The response has ended or a newer attempt owns it; the caller stops writing."""


@dataclass(slots=True, eq=False)
class Append:
    segment: Segment
    on_written: Callable[[Segment], None]
    on_refused: Callable[[Exception], None]
    blocked_at: float = 0.0  # when it first met a row that another session has locked
    due_at: float = 0.0  # when it is tried again

    @property
    def response_id(self) -> str:
        return self.segment.response_id


@dataclass(slots=True, eq=False)
class Call:
    work: Callable[[], Any]
    then: Callable[[Any], None] | None
    response_id: str = ""  # whose appends it never overtakes
    blocked_at: float = 0.0
    due_at: float = 0.0
    future: Future[Any] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # A caller that stops waiting can't take back what is about to be committed.
        self.future.set_running_or_notify_cancel()


Job = Append | Call
Delivery = Callable[[], None]


@dataclass(frozen=True)
class Undecided:
    """A transaction whose connection broke during its COMMIT, and its deliveries if it was stored."""

    jobs: list[Job]
    deliveries: list[Delivery]
    receipt: int


def success(job: Call, result: Any) -> Delivery:
    def deliver() -> None:
        try:
            if job.then is not None:
                job.then(result)
        except Exception:  # the work is committed, and its caller waits for the result
            logger.exception("The callback of a committed write failed.")
        job.future.set_result(result)

    return deliver


def refusal(job: Job, error: Exception) -> Delivery:
    if isinstance(job, Append):
        return lambda: job.on_refused(error)
    return lambda: job.future.set_exception(error)


def appends_of(jobs: list[Job]) -> list[Append]:
    return [job for job in jobs if isinstance(job, Append)]


def calls_of(jobs: list[Job]) -> list[Call]:
    return [job for job in jobs if isinstance(job, Call)]


def size_of(jobs: list[Job]) -> int:
    return sum(len(job.segment.data) for job in appends_of(jobs))


def coalesced(jobs: list[Job]) -> list[Job]:
    """Appends to one response become one segment; the calls follow."""
    groups: dict[tuple[str, int], list[Append]] = {}
    for job in appends_of(jobs):
        groups.setdefault((job.response_id, job.segment.attempt), []).append(job)
    merged: list[Job] = [_as_one(group) for group in groups.values()]
    return merged + calls_of(jobs)


def _as_one(group: list[Append]) -> Append:
    last = group[-1]
    if len(group) == 1:
        return last
    whole = concatenated([job.segment for job in group])
    return Append(whole, last.on_written, last.on_refused)
