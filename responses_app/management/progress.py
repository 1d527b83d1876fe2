"""Progress of long work: a line now and then, on the error stream, so that output can be piped."""

import time
from types import TracebackType

from django.core.management.base import OutputWrapper

STEP_SECS = 1.0


class Progress:
    """Counts what is done; whoever interrupts it is told how far it came."""

    def __init__(self, stream: OutputWrapper, verb: str, total: int | None = None) -> None:
        self._stream = stream
        self._verb = verb
        self._total = total
        self._told_at = time.monotonic()
        self.count = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _is_interruption(error):
            self._stream.write(f"Interrupted: {self._so_far()}. It can be run again.")
            raise KeyboardInterrupt from None

    def add(self, count: int = 1) -> None:
        self.count += count
        if time.monotonic() - self._told_at >= STEP_SECS:
            self._told_at = time.monotonic()
            self._stream.write(f"... {self._so_far()}")

    def _so_far(self) -> str:
        of_total = "" if self._total is None else f" of {self._total}"
        return f"{self.count}{of_total} {self._verb}"


def _is_interruption(error: BaseException | None) -> bool:
    """Also of what complained about it: a COMMIT that is interrupted leaves a connection that can't be cleaned up."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
