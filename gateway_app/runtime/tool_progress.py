"""What a tool says while it runs, in few pieces: each is an event of the log."""

import asyncio
from collections.abc import Callable

from responses_app.protocol.events import Event, clean_text

FLUSH_SECS = 0.2
MAX_CHARS = 100_000  # of one call; its result is stored whole all the same


class Progress:
    def __init__(self, call_id: str, note: Callable[[Event], None]) -> None:
        self._call_id = call_id
        self._note = note
        self._pieces: list[str] = []
        self._left = MAX_CHARS
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, piece: str) -> None:
        if self._is_closed or not piece or self._left <= 0:
            return
        self._pieces.append(piece[: self._left])
        self._left -= len(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECS, self._flush)

    def close(self) -> None:
        """The call is over: a tool that goes on printing adds nothing behind its end."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        text, self._pieces = "".join(self._pieces), []
        self._note(
            {"type": "hermes.tool.progress", "call_id": self._call_id, "text": clean_text(text)}
        )
