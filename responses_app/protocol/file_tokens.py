"""The tokens of a file in a conversation, as far as they are known before it is read.

A text file is sent as its text. Of a PDF file, only its pages are known here. The turn counts its
text instead, where the model's server takes no files.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable

from responses_app.protocol.items import ContentPart, Item

FILE = "input_file"
# The lower end of what is reported for the text of a page. Servers that take PDF files also
# send the model an image of each page.
TOKENS_PER_PAGE = 1_500
BYTES_PER_PAGE = 50_000  # of a PDF file whose page objects are compressed
BASE64_CHARS_PER_TOKEN = 6  # of other files
PDF_START = "JVBERi"  # "%PDF" in base64
_PAGES = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_SLICES = 64
_SLICE_CHARS = 168  # whole groups of base64
_MAX_KNOWN = 1_000
_known_pages: dict[tuple[int, int], int] = {}


def file_tokens(part: ContentPart, text_tokens: Callable[[str], int]) -> int:
    encoded = _encoded(part)
    if encoded.startswith(PDF_START):
        return _pages(encoded) * TOKENS_PER_PAGE
    sample = _sample(encoded)
    try:
        data = base64.b64decode(sample, validate=True)
    except binascii.Error:
        return len(encoded) // BASE64_CHARS_PER_TOKEN
    text = data.decode(errors="ignore")  # a slice may begin within a character
    if "\0" in text or len(text.encode()) * 2 < len(data):
        return len(encoded) // BASE64_CHARS_PER_TOKEN
    return round(text_tokens(text) * len(encoded) / max(1, len(sample)))


def pdf_tokens(items: Iterable[Item]) -> int:
    """Of the PDF files among the parts of messages."""
    tokens = 0
    for item in items:
        content = item.get("content")
        if not isinstance(content, list):
            continue
        for part in content:
            encoded = ""
            if part.get("type") == FILE:
                encoded = _encoded(part)
            if encoded.startswith(PDF_START):
                tokens += _pages(encoded) * TOKENS_PER_PAGE
    return tokens


def _encoded(part: ContentPart) -> str:
    encoded = part.get("file_data") or ""
    if encoded.startswith("data:"):
        return encoded.partition(",")[2]
    return encoded


def _sample(encoded: str) -> str:
    if len(encoded) <= _SLICES * _SLICE_CHARS:
        return encoded
    step = len(encoded) // _SLICES // 4 * 4
    slices = []
    for number in range(_SLICES):
        start = number * step
        slices.append(encoded[start : start + _SLICE_CHARS])
    return "".join(slices)


def _pages(encoded: str) -> int:
    """Each round of a turn counts the same files."""
    key = (len(encoded), hash(encoded))
    pages = _known_pages.get(key)
    if pages is None:
        pages = _counted_pages(encoded)
        if len(_known_pages) >= _MAX_KNOWN:
            _known_pages.clear()
        _known_pages[key] = pages
    return pages


def _counted_pages(encoded: str) -> int:
    try:
        data = base64.b64decode(encoded)
    except binascii.Error:
        return 1
    listed = len(_PAGES.findall(data))
    return listed or 1 + len(data) // BYTES_PER_PAGE
