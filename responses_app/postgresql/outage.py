"""Whether PostgreSQL answers at all: known once for the whole process."""

import threading
import time

from django.conf import settings
from psycopg import OperationalError


class Outage:
    """After one wait without a response, other threads fail at once.

    One try per ``HERMES_DATABASE_TIMEOUT`` is let through.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason = ""
        self._next_try_at = 0.0

    @property
    def is_known(self) -> bool:
        return bool(self._reason)

    def begin(self, reason: str) -> None:
        with self._lock:
            self._reason = reason
            self._next_try_at = time.monotonic() + settings.HERMES_DATABASE_TIMEOUT

    def end(self) -> None:
        self._reason = ""

    def check(self) -> None:
        """Raises during an outage, unless it is time for another try."""
        if not self._reason:
            return
        with self._lock:
            now = time.monotonic()
            if self._reason and now < self._next_try_at:
                raise OperationalError(self._reason)
            self._next_try_at = now + settings.HERMES_DATABASE_TIMEOUT


outage = Outage()
