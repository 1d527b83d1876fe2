"""The heartbeat of this process: without a fresh one it may not judge others."""

import time

from responses_app.services.lifecycle.claim import lease


class Heartbeat:
    """By the monotonic clock of this process.

    After an outage the database has no fresh heartbeat of any process. The first process to return
    would take the work of all others, so each waits one lease before it judges. A start counts as a
    return, and so does a step of the database's clock, after which all heartbeats are old.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._judges_from = self._last + _lease_secs()

    def note(self, sent_at: float) -> None:
        """A heartbeat that was sent then is stored."""
        if sent_at - self._last > _lease_secs() / 2:
            self.wait_before_judging()
        self._last = sent_at

    def wait_before_judging(self) -> None:
        self._judges_from = time.monotonic() + _lease_secs()

    @property
    def is_fresh(self) -> bool:
        """Others see it: what is claimed now is not taken away at once."""
        return time.monotonic() - self._last <= _lease_secs() / 2

    @property
    def judges_silence(self) -> bool:
        return self.is_fresh and time.monotonic() >= self._judges_from


def _lease_secs() -> float:
    return lease().total_seconds()
