"""Roles: which processes claim which turns."""

import time
from enum import StrEnum

from django.conf import settings

WORKERLESS_SECS = 2.0  # a worker that is started again must not find its work taken


class Role(StrEnum):
    WEB = "web"  # serves clients
    WORKER = "worker"  # runs turns
    PAGES = "pages"  # serves pages and reads; no gateway


def web_role() -> Role:
    if settings.HERMES_DISPATCH == "none":
        return Role.PAGES
    return Role.WEB


class Claims:
    """Whether this process claims stored turns. Unstored ones run where they were admitted."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.waits_for_workers = role == Role.WEB and settings.HERMES_DISPATCH == "workers"
        self.takes_stored = role != Role.PAGES and not self.waits_for_workers
        self._workerless_since: float | None = None

    def note_workers(self, live: int) -> None:
        """Of a web process that leaves turns to workers as long as one of them lives."""
        if not self.waits_for_workers:
            return
        if live:
            self._workerless_since = None
            self.takes_stored = False
            return
        now = time.monotonic()
        if self._workerless_since is None:
            self._workerless_since = now
        self.takes_stored = now - self._workerless_since >= WORKERLESS_SECS
