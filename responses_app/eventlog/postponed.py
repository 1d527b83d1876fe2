"""Postponed jobs: another session has locked their rows. They are tried again beside the others."""

import time

from responses_app.eventlog.jobs import Append, Call, Job

FIRST_PAUSE_SECS = 0.01  # another process holds a row for one commit
LONGEST_PAUSE_SECS = 0.25
GIVE_UP_SECS = 5.0  # a client that gets a 503 asks again; appends wait as long as it takes


class Postponed:
    """Used by the writer's thread alone, except for the sums.

    Appends to one response stay in their order, and a call about it stays after them.
    """

    def __init__(self) -> None:
        self.give_up_secs = GIVE_UP_SECS
        self.has_jobs = False  # read several times for each batch, so not a property
        self._appends: dict[str, list[Append]] = {}
        self._calls: list[Call] = []

    @property
    def size(self) -> int:
        """The bytes of the events that wait."""
        size = 0
        for jobs in list(self._appends.values()):
            for job in jobs:
                size += job.segment.size
        return size

    @property
    def oldest_at(self) -> float:
        """When the first of them met its lock; 0.0 when there is none."""
        waiting: list[Job] = [jobs[0] for jobs in list(self._appends.values())]
        waiting += self._calls
        return min((job.blocked_at for job in waiting), default=0.0)

    def add_all(self, jobs: list[Job]) -> None:
        """Another session has locked their rows: they wait apart from the other jobs."""
        for job in jobs:
            self.add(job)

    def add_held(self, jobs: list[Job]) -> list[Job]:
        """Add those that must not overtake a job that waits here; returns the others."""
        free: list[Job] = []
        for job in jobs:
            if self.holds(job):
                self.add(job)
            else:
                free.append(job)
        return free

    def add(self, job: Job) -> None:
        """Try the job again after a pause that grows with the time it has waited."""
        now = time.monotonic()
        job.blocked_at = job.blocked_at or now
        pause = min(max(FIRST_PAUSE_SECS, (now - job.blocked_at) / 2), LONGEST_PAUSE_SECS)
        job.due_at = now + pause
        if isinstance(job, Append):
            self._appends.setdefault(job.response_id, []).append(job)
        else:
            self._calls.append(job)
        self.has_jobs = True

    def holds(self, job: Job) -> bool:
        """An earlier append to its response waits, so that this one has to wait too."""
        return job.response_id in self._appends

    def next_due(self) -> float | None:
        """When the next job may be tried; None when there is none."""
        due_times = [jobs[0].due_at for jobs in self._appends.values()]
        for call in self._calls:
            if not self.holds(call):
                due_times.append(call.due_at)
        return min(due_times, default=None)

    def take_appends(self) -> list[Append]:
        """Those whose pause is over, each with all that waits after it."""
        now = time.monotonic()
        taken: list[Append] = []
        for response_id, jobs in list(self._appends.items()):
            if jobs[0].due_at <= now:
                taken += self._appends.pop(response_id)
        self._update()
        return taken

    def take_call(self) -> Call | None:
        """One whose pause is over; the writer serves everything else before it takes the next."""
        now = time.monotonic()
        for call in self._calls:
            if call.due_at <= now and not self.holds(call):
                self._calls.remove(call)
                self._update()
                return call
        return None

    def take_expired(self) -> list[Call]:
        """Calls that have waited too long."""
        limit = time.monotonic() - self.give_up_secs
        expired = [call for call in self._calls if call.blocked_at < limit]
        for call in expired:
            self._calls.remove(call)
        self._update()
        return expired

    def _update(self) -> None:
        self.has_jobs = bool(self._appends or self._calls)
