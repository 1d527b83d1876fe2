"""A text that is written piece by piece."""

MIN_PIECES = 64


class GrowingText:
    """Cheap to add to, and never much larger than its words: a piece of its own costs ten times what it says."""

    __slots__ = ("_limit", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._limit = MIN_PIECES

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        if len(self._pieces) > self._limit:
            self.whole()

    def whole(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
            # The longer it is, the rarer it is put together: linear time for any length.
            self._limit = max(MIN_PIECES, len(self._pieces[0]) // MIN_PIECES)
        return self._pieces[0]
