"""Segments that a hint carries, so that their readers in other processes need no query.

They are committed before they are sent. What is not carried, or is lost, is read from the database.
They are encrypted and authenticated: Redis may belong to others, and must not write in a stream.
"""

import secrets
from collections.abc import Sequence
from dataclasses import fields as dataclass_fields

import orjson
from cryptography.exceptions import InvalidTag

from responses_app.eventlog.segments import Segment
from responses_app.sealing import NotSealedHere, passing_cipher

MAX_BYTES = 128 * 1024  # of the events in one hint, which every process with readers receives
SALT_BYTES = 16
NONCE_BYTES = 12
_HEAD_BYTES = SALT_BYTES + NONCE_BYTES
_END_OF_FIELDS = b"\n"  # in no JSON of orjson
_PIECES_FIELD = [field.name for field in dataclass_fields(Segment)].index("pieces")


class SegmentSealer:
    """Of one process. Its key is its own, so that a counter is enough for nonces that never repeat."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(SALT_BYTES)
        self._cipher = passing_cipher(self._salt)
        self._count = 0

    def seal(self, segments: Sequence[Segment]) -> bytes:
        self._count += 1
        nonce = self._count.to_bytes(NONCE_BYTES, "big")
        sealed = self._cipher.encrypt(nonce, _packed(segments), None)
        return self._salt + nonce + sealed


def unseal_segments(carried: bytes) -> list[Segment]:
    """In the order of their commits. Raises NotSealedHere for what no process of this cluster has sealed."""
    if len(carried) <= _HEAD_BYTES:
        raise NotSealedHere
    cipher = passing_cipher(carried[:SALT_BYTES])
    nonce = carried[SALT_BYTES:_HEAD_BYTES]
    try:
        packed = cipher.decrypt(nonce, carried[_HEAD_BYTES:], None)
    except InvalidTag:
        raise NotSealedHere from None
    return _unpacked(packed)


def _packed(segments: Sequence[Segment]) -> bytes:
    """The fields of all as JSON, then the events of all."""
    fields: list[tuple[str | int | bool, ...]] = []
    for segment in segments:
        fields.append(_fields_of(segment))
    events = [segment.data for segment in segments]
    return orjson.dumps(fields) + _END_OF_FIELDS + b"".join(events)


def _fields_of(segment: Segment) -> tuple[str | int | bool, ...]:
    """In the order of the class, without its events; then how many bytes these are."""
    return (
        segment.response_id,
        segment.attempt,
        segment.first_position,
        segment.last_position,
        segment.first_sequence,
        segment.next_sequence,
        segment.is_final,
        segment.commit_marks,
        segment.size,
    )


def _unpacked(packed: bytes) -> list[Segment]:
    end = packed.index(_END_OF_FIELDS)
    start = end + len(_END_OF_FIELDS)
    segments: list[Segment] = []
    for fields in orjson.loads(packed[:end]):
        size = fields.pop()
        fields.insert(_PIECES_FIELD, (packed[start : start + size],))
        start += size
        segments.append(Segment(*fields))
    return segments
