"""Text of models and tools: cleaned, and collected piece by piece."""

MIN_PIECES = 64
CHARS_PER_PIECE = 256  # of the joined text; a piece takes about 60 bytes
_REPLACEMENT = "\ufffd"
_SURROGATES = range(0xD800, 0xE000)
_REPLACED = dict.fromkeys((0, *_SURROGATES), _REPLACEMENT)


def clean_text(text: str) -> str:
    """Text that every database and every JSON encoder takes.

    Models and tools emit NUL and lone surrogates; PostgreSQL and UTF-8 refuse them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_REPLACED)
    if "\0" in text:
        return text.replace("\0", _REPLACEMENT)
    return text


class TextBuffer:
    """Collects the deltas of one text in linear time.

    The pieces are joined now and then: a short string of its own takes ten times its length.
    """

    __slots__ = ("_limit", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._limit = MIN_PIECES

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        if len(self._pieces) > self._limit:
            self.text()

    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
            # The longer the text, the rarer it is joined: linear time for any length.
            self._limit = max(MIN_PIECES, len(self._pieces[0]) // CHARS_PER_PIECE)
        return self._pieces[0]
