"""Calls that a model writes into its text, as ``<tool_call>{...}</tool_call>``.

Some servers do not parse what their templates make the model write. Such a block is a call only at
the end of a message, outside of code fences, and for a tool that the request offers: a model may
also write about calls. All else stays text.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

import orjson

from gateway_app.agent.argument_repair import repaired
from gateway_app.agent.events import (
    ItemState,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    TextDelta,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.answer import CallTracker
from gateway_app.providers.openai.code_fences import CodeFences
from responses_app.protocol.items import TokenLogprob

OPENING, CLOSING = "<tool_call>", "</tool_call>"
_WHOLE_REASONS = ("stop", "tool_calls")  # of an answer that was not cut
_NOT_SPACE = re.compile(r"\S")
# In the JSON of a block, a closing tag inside a string is text.
_STRING_OR_END = re.compile(f'"|{CLOSING}')
_STRING_END = re.compile(r'\\.|"', re.DOTALL)


def with_text_calls(
    events: AsyncGenerator[ModelEvent], call: ModelCall
) -> AsyncGenerator[ModelEvent]:
    """The answer, with the blocks at its end as calls."""
    if not call.offered_names():
        return events
    return _filtered(events, _TextCalls(call))


async def _filtered(
    events: AsyncGenerator[ModelEvent], text_calls: "_TextCalls"
) -> AsyncGenerator[ModelEvent]:
    async with aclosing(events):
        try:
            async for event in events:
                for passed in text_calls.receive(event):
                    yield passed
        except ModelFailed:
            for delta in text_calls.release():
                yield delta
            raise


@dataclass(frozen=True)
class _WrittenCall:
    name: str
    arguments: str


class _TextCalls:
    """Holds text back for as long as it may be a block at the end of the message."""

    def __init__(self, call: ModelCall) -> None:
        self._call = call
        self._fences = CodeFences()
        self._ready: list[str] = []  # text that is no block
        self._held: list[str] = []  # text that may be blocks
        self._unread = ""  # the last characters, which may begin a tag
        self._logprobs: list[TokenLogprob] = []  # of text that was not emitted yet
        self._body: list[str] = []  # the JSON of the open block
        self._is_in_string = False
        self._written: list[_WrittenCall] = []  # in whole blocks that are held
        self._states: list[ItemState] = []  # of what is held
        # Reads the text from a position on, up to the position that it returns.
        self._read: Callable[[str, int], int] = self._read_text

    def receive(self, event: ModelEvent) -> Iterator[ModelEvent]:
        if isinstance(event, TextDelta):
            yield from self._feed(event)
        elif isinstance(event, ProtocolDeviation):
            yield event
        elif isinstance(event, ItemState) and not event.call_id:
            self._states.append(event)
        elif isinstance(event, ModelFinished) and event.reason in _WHOLE_REASONS:
            yield from self._finish(event)
        else:
            yield from self.release()
            yield event

    def release(self) -> Iterator[TextDelta]:
        """What is held is text after all."""
        unread, self._unread = self._unread, ""
        self._give_up()
        self._emit(unread)
        yield from self._take_ready()

    def _finish(self, event: ModelFinished) -> Iterator[ModelEvent]:
        if self._read != self._read_behind_block or self._unread:
            yield from self.release()
            yield from self._states
            yield event
            return
        tracker = CallTracker(self._call)
        for call in self._written:
            started = tracker.start("", call.name)
            yield started
            yield from tracker.arguments(started.call_id, call.arguments)
            yield from tracker.finish(started.call_id)
        for state in self._states:
            yield replace(state, call_id=started.call_id)
        yield replace(event, reason="tool_calls")

    def _feed(self, delta: TextDelta) -> Iterator[TextDelta]:
        self._logprobs += delta.logprobs
        text = self._unread + delta.text
        self._unread = ""
        position = 0
        while position < len(text):
            position = self._read(text, position)
        yield from self._take_ready()

    # -- readers ------------------------------------------------------------------------
    def _read_text(self, text: str, position: int) -> int:
        start = text.find(OPENING, position)
        if start < 0:
            end = len(text) - _begun_chars(text, position, OPENING)
            self._emit(text[position:end])
            self._unread = text[end:]
            return len(text)
        self._emit(text[position:start])
        if self._fences.is_open:
            self._emit(OPENING)
        else:
            self._open_block()
        return start + len(OPENING)

    def _open_block(self) -> None:
        self._held.append(OPENING)
        self._body = []
        self._read = self._read_block_start

    def _read_block_start(self, text: str, position: int) -> int:
        match = _NOT_SPACE.search(text, position)
        if match is not None and match.group() != "{":
            self._give_up()
            return position
        end = len(text) if match is None else match.start()
        self._held.append(text[position:end])
        if match is not None:
            self._is_in_string = False
            self._read = self._read_body
        return end

    def _read_body(self, text: str, position: int) -> int:
        pattern = _STRING_END if self._is_in_string else _STRING_OR_END
        match = pattern.search(text, position)
        if match is None:
            begun = r"\n" if self._is_in_string else CLOSING
            end = len(text) - _begun_chars(text, position, begun)
            self._hold_body(text[position:end])
            self._unread = text[end:]
            return len(text)
        if match.group() == CLOSING:
            self._hold_body(text[position : match.start()])
            self._close_block()
            return match.end()
        if match.group() == '"':
            self._is_in_string = not self._is_in_string
        self._hold_body(text[position : match.end()])
        return match.end()

    def _hold_body(self, text: str) -> None:
        self._held.append(text)
        self._body.append(text)

    def _close_block(self) -> None:
        self._held.append(CLOSING)
        written = self._call_in("".join(self._body))
        if written is None:
            self._give_up()
            return
        self._written.append(written)
        self._read = self._read_behind_block

    def _read_behind_block(self, text: str, position: int) -> int:
        match = _NOT_SPACE.search(text, position)
        if match is None:
            self._held.append(text[position:])
            return len(text)
        start = match.start()
        self._held.append(text[position:start])
        if text.startswith(OPENING, start):
            self._open_block()
            return start + len(OPENING)
        if OPENING.startswith(text[start:]):
            self._unread = text[start:]
            return len(text)
        self._give_up()
        return start

    # -- results ------------------------------------------------------------------------
    def _call_in(self, body: str) -> _WrittenCall | None:
        """None if this is not a call of an offered tool."""
        try:
            given = orjson.loads(body)
        except orjson.JSONDecodeError:
            try:
                given = repaired(body)
            except ValueError:
                return None
        arguments = given.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(given.get("name"), str) or not isinstance(arguments, dict | str):
            return None
        name = self._call.public_name(given["name"])
        if self._call.wire_name(name) not in self._call.offered_names():
            return None
        return _WrittenCall(name, self._arguments_text(name, arguments))

    def _arguments_text(self, name: str, arguments: dict[str, object] | str) -> str:
        if isinstance(arguments, str):
            return arguments
        for tool in self._call.client_tools:
            text = arguments.get("input")
            if tool["name"] == name and tool["type"] == "custom" and isinstance(text, str):
                return text
        return orjson.dumps(arguments).decode()

    def _give_up(self) -> None:
        held, self._held = self._held, []
        self._emit("".join(held))
        self._written = []
        self._read = self._read_text

    def _emit(self, text: str) -> None:
        self._ready.append(text)
        self._fences.add(text)

    def _take_ready(self) -> Iterator[TextDelta]:
        text = "".join(self._ready)
        self._ready = []
        if text:
            logprobs, self._logprobs = self._logprobs, []
            yield TextDelta(text, tuple(logprobs))


def _begun_chars(text: str, position: int, tag: str) -> int:
    """How many of the last characters begin the tag."""
    for size in range(min(len(tag) - 1, len(text) - position), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0
