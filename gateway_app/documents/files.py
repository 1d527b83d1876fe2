"""Files that clients send with their messages, as text for models that take no files."""

import base64
import binascii
import hashlib
import json
from collections import OrderedDict

from gateway_app.documents.extraction import Unreadable, extract
from gateway_app.documents.limits import cut

# A turn of many rounds sends the same file with each of them.
MAX_CACHED_CHARS = 4_000_000
_texts: OrderedDict[str, str] = OrderedDict()
MAX_UNREADABLE = 1000
_unreadable: dict[str, str] = {}  # the reason, so that no file is tried again in each turn


def is_pdf(data: bytes) -> bool:
    return data.startswith(b"%PDF-")


def file_bytes(file_data: str) -> bytes:
    """Of base64, or of a data URL with it."""
    encoded = file_data
    if file_data.startswith("data:"):
        encoded = file_data.partition(",")[2]
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise Unreadable("its data is not base64") from error


def plain_text(data: bytes) -> str | None:
    """The text of a text file of any kind; None for a PDF file, which may be all ASCII, and others."""
    if is_pdf(data):
        return None
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    return text


async def file_text(name: str, file_data: str) -> str:
    """The text of a file in a frame that names it."""
    key = hashlib.sha256(f"{name}\0{file_data}".encode()).hexdigest()
    if key in _unreadable:
        raise Unreadable(_unreadable[key])
    if key not in _texts:
        text = await _read_or_note(key, file_data)
        _texts[key] = f"[file {json.dumps(name)}]\n{text}\n[end of the file]"
        while len(_texts) > 1 and sum(map(len, _texts.values())) > MAX_CACHED_CHARS:
            _texts.popitem(last=False)
    _texts.move_to_end(key)
    return _texts[key]


async def _read_or_note(key: str, file_data: str) -> str:
    try:
        return await _read(file_bytes(file_data))
    except Unreadable as error:
        if len(_unreadable) >= MAX_UNREADABLE:
            _unreadable.clear()
        _unreadable[key] = str(error)
        raise


async def _read(data: bytes) -> str:
    if is_pdf(data):
        found = await extract("pdf", data)
        return found["text"]
    text = plain_text(data)
    if text is None:
        raise Unreadable("it is neither a text file nor a PDF file")
    return cut(text)
