"""Server-Sent Events as an upstream sends them."""

import json
import math
from collections.abc import Callable
from typing import Any

import orjson

from gateway_app.agent.events import ModelFailed
from gateway_app.providers.openai.errors import error_in, failure_in

Event = dict[str, Any]

MAX_EVENT_BYTES = 32_000_000
MAX_ANSWER_BYTES = 32_000_000  # of one that is not streamed
VERY_UNLIKELY = -9999.0  # OpenAI's own log probability for a token of which it knows no more


class WholeAnswer(dict[str, Any]):
    """The answer as one JSON object, from a server that does not stream."""


class EventSplitter:
    """From the bytes of a body, cut anywhere, to the data of its events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._ended_with_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._ended_with_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        found = []
        for frame in self._frames(chunk):
            data = _data_of(frame)
            if data:
                found.append(data)
        return found

    def _frames(self, chunk: bytes) -> list[bytes]:
        """The events that end with this chunk; what is behind them stays in the buffer."""
        if not self._buffer:  # most chunks begin with an event
            frames = chunk.split(b"\n\n")
            self._buffer += frames.pop()
            return frames
        searched = len(self._buffer) - 1
        self._buffer += chunk
        if self._buffer.find(b"\n\n", searched) < 0:
            if len(self._buffer) > MAX_EVENT_BYTES:
                raise cut_off("an event has no end")
            return []
        pieces = self._buffer.split(b"\n\n")
        self._buffer = pieces.pop()
        return [bytes(piece) for piece in pieces]

    def end(self) -> list[bytes]:
        """Some servers leave out the blank line after their last event."""
        return self.feed(b"\n\n")


def parse(data: bytes) -> Event:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        event = _parse_leniently(data)
    if b"error" not in data and isinstance(event, dict):  # most events
        return event
    is_object = isinstance(event, dict)
    if not is_object or event.get("error") or "error" in (event.get("type"), event.get("object")):
        error = error_in(event)
        if error is not None:
            raise failure_in(error)
    if not is_object:
        raise cut_off("an event is not an object")
    return event  # type: ignore[no-any-return]


class Batch:
    """The events of one read, up to the last one of the answer or to one that is a failure."""

    def __init__(self, frames: list[bytes], is_last: Callable[[Event], bool]) -> None:
        self.events: list[Event] = []
        self.failure: ModelFailed | None = None
        self.is_over = False
        for data in frames:
            if data == b"[DONE]":
                self.is_over = True
                return
            try:
                event = parse(data)
            except ModelFailed as failure:
                self.failure = failure
                return
            self.events.append(event)
            if is_last(event):
                self.is_over = True
                return


def cut_off(how: str) -> ModelFailed:
    return ModelFailed(f"The model's stream was cut: {how}.", is_transient=True)


def _data_of(frame: bytes) -> bytes:
    """The content of the frame's data lines; comments and other fields are left out."""
    if frame.startswith(b"data: ") and b"\n" not in frame:  # most frames
        return frame[6:]
    parts = []
    for line in frame.split(b"\n"):
        if line.startswith(b"data:"):
            parts.append(line[5:].removeprefix(b" "))
    if not parts:
        return _bare_error(frame)
    return b"\n".join(parts)


def _bare_error(frame: bytes) -> bytes:
    """Older llama.cpp servers have a field for errors; relays send the JSON of one as it is."""
    stripped = frame.strip()
    if stripped.startswith(b"error:"):
        return b'{"error":%s}' % stripped.removeprefix(b"error:")
    if stripped.startswith((b"{", b"[")) and b'"error"' in stripped:
        return stripped
    return b""


def _parse_leniently(data: bytes) -> Any:
    """Half a surrogate pair or a number that JSON does not have must not end the answer."""
    try:
        return _with_json_numbers(json.loads(data.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        raise cut_off("an event is not valid JSON") from None


def _with_json_numbers(value: Any, name: str = "") -> Any:
    """Without NaN, Infinity and very long integers: Python reads them, encoders and databases do not."""
    if isinstance(value, dict):
        return {key: _with_json_numbers(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_json_numbers(inner, name) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        if abs(value) >= 10**300:
            return None
        value = float(value)
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if name == "logprob" and value < 0:
        return VERY_UNLIKELY
    return None
