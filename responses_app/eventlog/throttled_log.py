"""Complaints about the database: one line every few seconds, however many writes wait for it."""

import logging
import time

EVERY_SECS = 10.0


class Complaint:
    def __init__(self, logger: logging.Logger, text: str) -> None:
        self._logger = logger
        self._text = text
        self._due = 0.0

    def say(self, error: Exception) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + EVERY_SECS
            self._logger.error("%s: %s", self._text, error)
