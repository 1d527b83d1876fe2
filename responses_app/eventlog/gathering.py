"""A short pause between two commits: what comes meanwhile makes one larger commit."""

import threading

from responses_app.eventlog.jobs import Call, Job

# After a batch as large as this, or if more came during its commit, there is a pause.
BUSY_JOBS = 8
TICK_SECS = 0.005


class Gathering:
    """Appends gather without waking the writer's thread; a call, whose caller waits, ends the pause."""

    def __init__(self, arrival: threading.Condition) -> None:
        self._arrival = arrival
        self._is_pausing = False

    def wakes(self, job: Job) -> bool:
        """Whether the thread is to be woken for a job; the caller holds the lock."""
        if isinstance(job, Call):
            self._is_pausing = False
        return not self._is_pausing

    def end(self) -> None:
        self._is_pausing = False

    def pause(self, committed: list[Job], waiting: list[Job]) -> None:
        """In the thread, after a commit: not if a call waits already."""
        if len(committed) < BUSY_JOBS and len(waiting) < 2:
            return
        with self._arrival:
            self._is_pausing = not any(isinstance(job, Call) for job in waiting)
            self._arrival.wait_for(self._is_over, TICK_SECS)
            self._is_pausing = False

    def _is_over(self) -> bool:
        return not self._is_pausing
