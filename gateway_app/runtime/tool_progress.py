"""What a tool prints while it runs, as events of the log."""

import asyncio
from collections.abc import Callable

from responses_app.protocol.events import TOOL_OUTPUT, Event
from responses_app.protocol.text_buffer import clean_text

PROGRESS_SECS = 0.2  # between two events of one call
MAX_PROGRESS_CHARS = 100_000  # of one call; its result is stored whole all the same


class ToolProgress:
    """What a tool prints while it runs, in few pieces: each is an event of the log."""

    def __init__(self, call_id: str, note: Callable[[Event], None]) -> None:
        self._call_id = call_id
        self._note = note
        self._pieces: list[str] = []
        self._left = MAX_PROGRESS_CHARS
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, piece: str) -> None:
        if self._is_closed or not piece or self._left <= 0:
            return
        self._pieces.append(piece[: self._left])
        self._left -= len(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_SECS, self._flush)

    def close(self) -> None:
        """The call is over: a tool that goes on printing adds nothing behind its end."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        text = "".join(self._pieces)
        self._pieces = []
        self._note({"type": TOOL_OUTPUT, "call_id": self._call_id, "text": clean_text(text)})
