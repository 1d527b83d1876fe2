"""One answer in a format: its reasoning and its calls pass, its text waits until it is checked."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gateway_app.agent.events import (
    Annotation,
    CallArguments,
    CallStarted,
    ItemState,
    MessageStarted,
    ModelEvent,
    ModelFinished,
    ProtocolDeviation,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.formats import TextFormat
from gateway_app.providers.openai.json_documents import DocumentRejected, checked_text
from responses_app.protocol.items import TokenLogprob
from responses_app.protocol.text_buffer import TextBuffer
from responses_app.protocol.token_estimate import tokens_of

COMMENTARY = "commentary"  # the phase of a message that is not the answer
_SPACE = " \t\r\n"
_OBJECT_START = "{"
_STARTS = '{["-0123456789tfn'  # of any JSON document


@dataclass
class _Message:
    start: MessageStarted | None = None
    text: TextBuffer = field(default_factory=TextBuffer)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    behind_text: list[Annotation | ItemState] = field(default_factory=list)

    def events(self) -> Iterator[ModelEvent]:
        if self.start is not None:
            yield self.start
        text = self.text.text()
        if text:
            yield TextDelta(text, tuple(self.logprobs))
        yield from self.behind_text


class HeldAnswer:
    """With ``streams``, a text that begins as a document does passes too, and is checked at its end."""

    def __init__(self, call: ModelCall, wanted: TextFormat, *, streams: bool = False) -> None:
        self.finish = ModelFinished("stop", Usage())
        self.text = ""  # the document, once it is checked
        self.is_document = False  # one that the schema allows
        self.is_bare = True  # there is nothing but whitespace around the document
        self.has_sent_text = False  # of the last message
        self._call = call
        self._schema = wanted.schema
        self._streams = streams
        self._earlier: list[_Message] = []  # held, in front of the last one
        self._message = _Message()  # the last one: this is the document
        self._passes_text = False
        self._is_undecided = streams  # until the text begins
        self._chars = 0
        self._client_tools = {tool["name"] for tool in call.client_tools}
        self._is_no_document = False  # a refusal or a call
        self._is_followed = False  # by the answer to the results of the server's tools

    def receive(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        """What the client gets now."""
        if isinstance(event, TextDelta):
            return self._receive_text(event)
        if isinstance(event, ModelFinished):
            self.finish = event
            return ()
        if isinstance(event, MessageStarted):
            return self._begin_message(event)
        if isinstance(event, Annotation) or (isinstance(event, ItemState) and not event.call_id):
            if self._passes_text:
                return (event,)
            self._message.behind_text.append(event)
            return ()
        self._note(event)
        if isinstance(event, RefusalDelta) and self._message.start is not None:
            return *self._take_start(), event
        return (event,)

    def _receive_text(self, delta: TextDelta) -> tuple[ModelEvent, ...]:
        self._chars += len(delta.text)
        self._message.text.add(delta.text)
        if self._passes_text:
            return (delta,)
        self._message.logprobs += delta.logprobs
        begun = delta.text.lstrip(_SPACE)
        if not self._is_undecided or not begun:
            return ()
        self._is_undecided = False
        if not self._may_begin(begun[0]):
            return ()
        self._passes_text = self.has_sent_text = True
        return tuple(self._message.events())

    def _may_begin(self, character: str) -> bool:
        if self._schema.get("type") == "object":
            return character == _OBJECT_START
        return character in _STARTS

    def _begin_message(self, event: MessageStarted) -> tuple[ModelEvent, ...]:
        """A comment is no document, and passes; but nothing passes what is held in front of it."""
        if not self._passes_text and self._message.text.text():
            self._earlier.append(self._message)
        self._message = _Message(event)
        self.has_sent_text = False
        self._passes_text = event.phase == COMMENTARY and not self._earlier
        self._is_undecided = self._streams and not self._passes_text and not self._earlier
        if self._passes_text:
            return (event,)
        return ()

    def _take_start(self) -> tuple[MessageStarted, ...]:
        """A refusal is a message too."""
        start, self._message.start = self._message.start, None
        if start is None or self._passes_text:
            return ()
        return (start,)

    def _note(self, event: ModelEvent) -> None:
        if isinstance(event, ReasoningDelta):
            self._chars += len(event.text)
        elif isinstance(event, CallArguments):
            self._chars += len(event.delta)
        elif isinstance(event, CallStarted):
            self._is_no_document = True
            if event.name not in self._client_tools:
                self._is_followed = True
        elif isinstance(event, RefusalDelta):
            self._is_no_document = True

    def usage(self, counted: Usage) -> Usage:
        """An answer of which nothing came costs nothing."""
        if not self._chars and counted == Usage():
            return counted
        return counted.or_estimate(self._call.input_tokens(), tokens_of(self._chars))

    async def check(self) -> DocumentRejected | None:
        """What is wrong with it; an answer that was cut off is incomplete, and not wrong."""
        self.text = self._message.text.text()
        if self.finish.reason != "stop" or self._is_no_document:
            return None
        try:
            text = await asyncio.to_thread(checked_text, self.text, self._schema)
        except DocumentRejected as rejected:
            return rejected
        self.is_document = True
        self.is_bare = text == self.text.strip(_SPACE)
        if text != self.text:
            self.text = text
            self._message.text = TextBuffer(text)
            self._message.logprobs = []
        return None

    def release(self, spent: Usage, *, is_rejected: bool = False) -> Iterator[ModelEvent]:
        """What is held, each text as one delta.

        A rejected document has used up the client's limit: it is incomplete. Text beside a call of
        the server's tools is left out: clients would find it before the document.
        """
        held = list(self._earlier)
        if not self._passes_text:
            held.append(self._message)
        has_text = any(message.text.text() for message in held)
        if has_text and self._is_followed:
            yield ProtocolDeviation("text beside a call in place of a document")
        elif has_text:
            for message in held:
                yield from message.events()
        finish = replace(self.finish, usage=spent)
        if is_rejected:
            finish = replace(finish, reason="length")
        yield finish
