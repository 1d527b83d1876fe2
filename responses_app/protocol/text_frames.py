"""Frames of text deltas, which are most of every log: written and read without their JSON.

The bytes are those of ``encode_frame``; a test compares them.
"""

import orjson

from responses_app.protocol.events import TEXT_DELTA
from responses_app.protocol.sse import encode_frame

_PREFIX = b"event: %s\n" % TEXT_DELTA.encode()
_DELTA = b'"delta":'  # no field before it holds a text of a model
_WITHOUT_LOGPROBS = b',"logprobs":[]}\n\n'
_NUMBER = b'"sequence_number":'
_MARK = "\ue000"


class TextFrames:
    """Makes the frames of one text part; only number and text differ between them."""

    __slots__ = ("_before_delta", "_before_number")

    def __init__(self, item_id: str, output_index: int) -> None:
        frame = encode_frame(
            {
                "type": TEXT_DELTA,
                "item_id": item_id,
                "output_index": output_index,
                "content_index": 0,
                "delta": _MARK,
                "logprobs": [],
            },
            0,
        )
        before_delta, _, _ = frame.replace(_NUMBER + b"0", _NUMBER).partition(orjson.dumps(_MARK))
        start, field, self._before_delta = before_delta.partition(_NUMBER)
        self._before_number = start + field

    def encode(self, text: str, sequence: int) -> bytes:
        return b"%b%d%b%b%b" % (
            self._before_number,
            sequence,
            self._before_delta,
            orjson.dumps(text),
            _WITHOUT_LOGPROBS,
        )


def encoded_text(frame: bytes) -> bytes | None:
    """The text of a delta without log probabilities, as JSON; None for any other frame."""
    if not frame.startswith(_PREFIX) or not frame.endswith(_WITHOUT_LOGPROBS):
        return None
    start = frame.index(_DELTA) + len(_DELTA)
    return frame[start : -len(_WITHOUT_LOGPROBS)]
