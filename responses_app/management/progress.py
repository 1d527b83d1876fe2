"""Progress of long work: a line now and then, on the error stream, so that output can be piped."""

import time

from django.core.management.base import OutputWrapper

STEP_SECS = 1.0


class Progress:
    def __init__(self, stream: OutputWrapper, verb: str, total: int | None = None) -> None:
        self._stream = stream
        self._verb = verb
        self._total = total
        self._told_at = time.monotonic()
        self.count = 0

    def add(self, count: int = 1) -> None:
        self.count += count
        if time.monotonic() - self._told_at >= STEP_SECS:
            self._told_at = time.monotonic()
            of_total = "" if self._total is None else f" of {self._total}"
            self._stream.write(f"... {self.count}{of_total} {self._verb}")

    def end(self) -> int:
        return self.count
