"""A log line that many callers repeat during an outage, written once in a while."""

import logging
import time

EVERY_SECS = 10.0


class ThrottledLog:
    def __init__(self, logger: logging.Logger, text: str) -> None:
        self._logger = logger
        self._text = text
        self._next_at = 0.0

    def error(self, error: Exception) -> None:
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + EVERY_SECS
            self._logger.error("%s: %s", self._text, str(error) or type(error).__name__)
