"""Whether a text that comes in pieces is inside a fenced code block of Markdown."""

import re

MAX_FENCE_CHARS = 100  # of a line: enough to know a fence
_FENCE = re.compile(r" {0,3}(?P<marker>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)


class CodeFences:
    def __init__(self) -> None:
        self._marker = ""  # that opened the block
        self._line = ""  # the beginning of the current line

    @property
    def is_open(self) -> bool:
        return bool(self._marker or _opening_marker(self._line))

    def add(self, text: str) -> None:
        *ended, last = text.split("\n")
        for piece in ended:
            self._extend(piece)
            self._end_line()
        self._extend(last)

    def _extend(self, piece: str) -> None:
        if len(self._line) < MAX_FENCE_CHARS:
            self._line += piece[:MAX_FENCE_CHARS]

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if not self._marker:
            self._marker = _opening_marker(line)
        elif _is_closing(line, self._marker):
            self._marker = ""


def _opening_marker(line: str) -> str:
    """Backticks behind a marker of backticks make it code inside of a line."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return ""
    marker = match.group("marker")
    if marker[0] == "`" and "`" in match.group("info"):
        return ""
    return marker


def _is_closing(line: str, marker: str) -> bool:
    match = _FENCE.fullmatch(line)
    if match is None or match.group("info").strip():
        return False
    return match.group("marker").startswith(marker)
