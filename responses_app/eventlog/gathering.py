"""When the next commit is due: what comes until then makes one larger commit."""

import asyncio
import threading
from dataclasses import dataclass

from responses_app.eventlog.jobs import Call, Job

# Appends that no reader waits for gather this long, or until there are so many bytes of them.
UNREAD_SECS = 0.05
UNREAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Pace:
    """There is a pause after a batch of so many jobs, or if more came during its commit."""

    busy_jobs: int
    pause_secs: float


ALONE = Pace(busy_jobs=8, pause_secs=0.005)
# Each commit also costs other processes a message. Half of the pause is added to the median delay.
SHARED = Pace(busy_jobs=1, pause_secs=0.008)


class Gathering:
    """Appends gather without waking the writer's thread; a call, whose caller waits, ends that.

    The caller of every method but ``pause`` holds the lock.
    """

    def __init__(self, arrival: threading.Condition) -> None:
        self._arrival = arrival
        self._is_pausing = False
        self.is_due = False  # of the jobs that wait, one is worth a commit
        self._has_unread = False
        self._has_timer = False

    def wakes(self, job: Job, pending_bytes: int, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Whether the thread is to be woken for a job."""
        if isinstance(job, Call):
            self._is_pausing = False
            self.is_due = True
        elif job.is_urgent or pending_bytes > UNREAD_BYTES or loop is None:
            self.is_due = True
        else:
            self._wait_for_readers(loop)
            return False
        return not self._is_pausing

    def take(self) -> None:
        """The thread takes all jobs."""
        self.is_due = False
        self._has_unread = False

    def end(self) -> None:
        self._is_pausing = False
        self.is_due = True

    def pause(self, committed: list[Job], waiting: list[Job], pace: Pace) -> None:
        """In the thread, after a commit: not if a call waits already."""
        has_more = self.is_due and len(waiting) > 1
        if len(committed) < pace.busy_jobs and not has_more:
            return
        with self._arrival:
            self._is_pausing = not any(isinstance(job, Call) for job in waiting)
            self._arrival.wait_for(self._is_over, pace.pause_secs)
            self._is_pausing = False

    def _is_over(self) -> bool:
        return not self._is_pausing

    def _wait_for_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the event loop. One timer serves all appends: it may end the wait of a later one early."""
        self._has_unread = True
        if not self._has_timer:
            self._has_timer = True
            loop.call_later(UNREAD_SECS, self._end_wait)

    def _end_wait(self) -> None:
        with self._arrival:
            self._has_timer = False
            if self._has_unread:
                self.is_due = True
                self._arrival.notify()
