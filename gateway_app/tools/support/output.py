"""Output for the model: bounded, with a note where it was cut."""

import codecs
from collections.abc import Callable

MAX_RESULT_CHARS = 1_000_000  # what the ledger keeps of one call; the model gets less
# Of one call, to its readers; a runaway command must not fill the event log.
MAX_REPORTED_CHARS = 1_000_000


def shown(name: str) -> str:
    """A file's name on one line; what is not UTF-8 or can't be printed is escaped."""
    text = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    escaped = []
    for char in text:
        if char.isprintable():
            escaped.append(char)
        else:
            escaped.append(char.encode("unicode_escape").decode())
    return "".join(escaped)


class Output:
    """Collects the bytes of a process: reports each piece, and keeps the beginning and the end."""

    def __init__(self, report: Callable[[str], None], max_chars: int = MAX_RESULT_CHARS) -> None:
        self._report = report
        self._half = max_chars // 2
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail = ""
        self._chars = 0

    def take(self, data: bytes) -> None:
        self._add(self._decoder.decode(data))

    def _add(self, piece: str) -> None:
        room = MAX_REPORTED_CHARS - self._chars
        if piece and room > 0:
            reported = piece
            if len(piece) > room:
                reported = piece[:room] + "\n[the rest is not shown live]\n"
            self._report(reported)
        self._chars += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > 2 * self._half:  # trimmed now and then, not with every piece
            self._tail = self._tail[-self._half :]

    def text(self) -> str:
        self._add(self._decoder.decode(b"", final=True))
        tail = self._tail[-self._half :]
        left_out = self._chars - len(self._head) - len(tail)
        if not left_out:
            return self._head + tail
        return f"{self._head}\n[... cut: {left_out} characters left out ...]\n{tail}"
