"""What the writer is asked to do, and what is said about it afterwards."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from responses_app.eventlog.segments import Segment, concatenated


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


@dataclass(frozen=True)
class Undecided:
    """A transaction whose connection broke during its COMMIT, and what to say if it was stored."""

    jobs: list[Job]
    deliveries: list[Delivery]
    receipt: int


def success(job: Call, result: Any) -> Delivery:
    def deliver() -> None:
        if job.then is not None:
            job.then(result)
        job.future.set_result(result)

    return deliver


def refusal(job: Job, error: Exception) -> Delivery:
    if isinstance(job, Append):
        return lambda: job.on_refused(error)
    return lambda: job.future.set_exception(error)


def coalesced(jobs: list[Job]) -> list[Job]:
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
