"""Progress of a command, on the error stream, so that the output can be piped.

On a terminal it is one line with the rate and the time left, elsewhere a line per second.
"""

import time
from datetime import timedelta
from types import TracebackType

from django.core.management.base import OutputWrapper

STEP_SECS = 1.0
TERMINAL_STEP_SECS = 0.2
CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Counts finished steps, and reports their number while they go on and at an interruption."""

    def __init__(self, stream: OutputWrapper, verb: str, total: int | None = None) -> None:
        self._stream = stream
        self._verb = verb
        self._total = total
        self._is_terminal = stream.isatty()
        self._step_secs = TERMINAL_STEP_SECS if self._is_terminal else STEP_SECS
        self._started_at = time.monotonic()
        self._reported_at = self._started_at
        self._is_line_open = False
        self.count = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()
        if _is_interruption(error):
            self._stream.write(f"Interrupted: {self._text()}. It can be run again.")
            raise KeyboardInterrupt from None

    def add(self, count: int = 1) -> None:
        self.count += count
        now = time.monotonic()
        if now - self._reported_at < self._step_secs:
            return
        self._reported_at = now
        if self._is_terminal:
            line = f"{CLEAR_LINE}{self._text()}{self._pace(now - self._started_at)}"
            self._write(line, ending="")
            self._stream.flush()
            self._is_line_open = True
        else:
            self._write(f"... {self._text()}")

    def clear(self) -> None:
        """Before another line is written to the same terminal."""
        if self._is_line_open:
            self._write(CLEAR_LINE, ending="")
            self._is_line_open = False

    def _write(self, text: str, ending: str | None = None) -> None:
        """Plain: on a terminal, Django's error stream is red."""
        self._stream.write(text, style_func=str, ending=ending)

    def _text(self) -> str:
        if self._total is None:
            return f"{self.count} {self._verb}"
        return f"{self.count} of {self._total} {self._verb}"

    def _pace(self, secs: float) -> str:
        rate = self.count / secs
        pace = f", {rate:,.0f}/s"
        if self._total is not None and rate:
            left = max(0, self._total - self.count) / rate
            pace += f", {timedelta(seconds=round(left))} left"
        return pace


def _is_interruption(error: BaseException | None) -> bool:
    """Looks at causes too: the clean-up after an interrupted COMMIT raises another error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
