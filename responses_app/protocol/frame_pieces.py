"""Frames in pieces: a long text is encoded once, however many events repeat it.

The end of a message repeats its whole text in five events. Their frames share the encoded text, so
that they take no more memory than one of them. Joined, the pieces are what ``encode_frame`` makes;
a test compares them.
"""

import secrets
import zlib
from collections.abc import Iterable
from typing import Any

import orjson

from responses_app.protocol.events import Event
from responses_app.protocol.sse import FRAME_END, encode_frame

Pieces = tuple[bytes, ...]

LONG_BYTES = 64 * 1024  # of a frame; a shorter one is one piece, and costs nothing more
# Stands for a text while its event is encoded. It never leaves this process, so no text has it.
_MARK = b'"%s"' % secrets.token_hex(16).encode()


class FrameEncoder:
    """Encodes the events of one log; it keeps the last long text, which the next events repeat."""

    __slots__ = ("_encoded", "_text")

    def __init__(self) -> None:
        self._text = ""
        self._encoded = b""

    def pieces(self, event: Event, sequence: int | None) -> Pieces:
        frame = encode_frame(event, sequence)
        if len(frame) < LONG_BYTES:
            return (frame,)
        del frame
        texts: list[str] = []
        marked = encode_frame(_with_marks(event, texts), sequence)
        around = marked.split(_MARK)
        pieces = [around[0]]
        for text, rest in zip(texts, around[1:], strict=True):
            pieces += (self._encode(text), rest)
        return tuple(pieces)

    def _encode(self, text: str) -> bytes:
        if text is not self._text:
            self._encoded = orjson.dumps(text)
            self._text = text
        return self._encoded


def _with_marks(value: Any, texts: list[str]) -> Any:
    """The value with a mark in the place of each long text, and the texts in their order."""
    if isinstance(value, str) and len(value) * 2 >= LONG_BYTES:
        texts.append(value)
        return orjson.Fragment(_MARK)
    if isinstance(value, dict):
        return {name: _with_marks(inner, texts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_marks(inner, texts) for inner in value]
    return value


def gathered(pieces: Iterable[bytes]) -> Pieces:
    """Short neighbours as one piece; a long piece is not copied."""
    found: list[bytes] = []
    short: list[bytes] = []
    for piece in pieces:
        if len(piece) < LONG_BYTES:
            short.append(piece)
            continue
        if short:
            found.append(b"".join(short))
            short = []
        found.append(piece)
    if short:
        found.append(b"".join(short))
    return tuple(found)


def framed(pieces: Iterable[bytes]) -> list[Pieces]:
    """The pieces of each frame."""
    frames: list[Pieces] = []
    frame: list[bytes] = []
    for piece in pieces:
        if piece.find(FRAME_END) == len(piece) - len(FRAME_END):  # a long one is not copied
            frames.append((*frame, piece))
            frame = []
            continue
        ended = piece.split(FRAME_END)
        rest = ended.pop()
        for end in ended:
            frames.append((*frame, end + FRAME_END))
            frame = []
        if rest:
            frame.append(rest)
    return frames


def compressed(pieces: Iterable[bytes]) -> bytes:
    """All of them as ``zlib.compress`` has them, without a copy that is joined."""
    packer = zlib.compressobj()
    packed = [packer.compress(piece) for piece in pieces]
    return b"".join(packed) + packer.flush()
