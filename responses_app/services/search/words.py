"""Words as the search index has them: without case and accents, each once."""

import re
import unicodedata
from collections.abc import Iterable

from responses_app.protocol.items import Item, item_text

MAX_WORD_CHARS = 64  # longer runs are encoded data
MAX_WORDS_BYTES = 500_000  # of one response; a tsvector of PostgreSQL holds 1 MB
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts without spaces: each sign is a word
_WORDS = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")


def words_in(text: str) -> list[str]:
    """Each word once, in the order of the text."""
    # One by one: a list of all words of a long text takes many times its size.
    found = dict.fromkeys(match[0] for match in _WORDS.finditer(_plain(text)))
    return [word for word in found if len(word) <= MAX_WORD_CHARS]


def words_of(items: Iterable[Item]) -> str:
    """The words of the messages among these items, separated by spaces."""
    texts = [item_text(item) for item in items if item.get("type", "message") == "message"]
    words = " ".join(words_in("\n".join(texts)))
    if len(words) <= MAX_WORDS_BYTES // 4:
        return words
    cut = words.encode()[:MAX_WORDS_BYTES]
    if len(cut) < MAX_WORDS_BYTES:
        return words
    return cut.decode(errors="ignore").rpartition(" ")[0]


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = [char for char in decomposed if not unicodedata.combining(char)]
    return unicodedata.normalize("NFC", "".join(kept)).lower()
