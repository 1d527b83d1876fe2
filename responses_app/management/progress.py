"""Progress of a command: a line per second on the error stream, so that the output can be piped."""

import time
from types import TracebackType

from django.core.management.base import OutputWrapper

STEP_SECS = 1.0


class Progress:
    """Counts finished steps, and reports their number while they go on and at an interruption."""

    def __init__(self, stream: OutputWrapper, verb: str, total: int | None = None) -> None:
        self._stream = stream
        self._verb = verb
        self._total = total
        self._reported_at = time.monotonic()
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
            self._stream.write(f"Interrupted: {self._text()}. It can be run again.")
            raise KeyboardInterrupt from None

    def add(self, count: int = 1) -> None:
        self.count += count
        if time.monotonic() - self._reported_at >= STEP_SECS:
            self._reported_at = time.monotonic()
            self._stream.write(f"... {self._text()}")

    def _text(self) -> str:
        if self._total is None:
            return f"{self.count} {self._verb}"
        return f"{self.count} of {self._total} {self._verb}"


def _is_interruption(error: BaseException | None) -> bool:
    """Looks at causes too: the clean-up after an interrupted COMMIT raises another error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
