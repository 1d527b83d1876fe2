"""The answer of a model: for its tools, for the next call, and to continue it after a cut."""

from collections.abc import Sequence
from dataclasses import replace

from gateway_app.agent.context import as_note, without_dangling_reasoning
from gateway_app.agent.cut_message import with_rest
from gateway_app.agent.events import (
    Annotation,
    CallArguments,
    CallFinished,
    CallStarted,
    MessageStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
    UpstreamAbandoned,
    UpstreamPosition,
)
from gateway_app.agent.model_call import CutAt, ModelCall
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.text_buffer import TextBuffer

CONTINUE = (
    "Your answer above was cut off by a lost connection. Go on exactly where it stops: "
    "repeat nothing of it, and do not comment on the interruption."
)


class AnswerBuffer:
    """Collects the answer of one round, which may take several requests.

    This is the agent's only copy of the text. The response's snapshot keeps its own: it is built
    from the recorded events alone, in the form that clients see.
    """

    def __init__(self) -> None:
        self._entries: list[Item | _Message | _Call] = []
        self._message: _Message | None = None  # the last entry, if text can be added to it
        self.runs_upstream = False  # also without a connection
        self.begin_request()

    def begin_request(self) -> None:
        """What follows is the answer to another request of the round."""
        self.has_deltas = False  # whether the client got anything of it
        self.chars = 0  # of everything the model wrote
        self.is_plain_text = True
        self._message = None
        self._request_start = len(self._entries)
        self._calls: dict[str, _Call] = {}
        self._finish: ModelFinished | None = None

    def add(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):  # the most frequent event
            self._add_text(event.text)
        elif isinstance(event, ReasoningDelta):
            self.has_deltas = True
            self.is_plain_text = False
            self.chars += len(event.text)
        elif isinstance(event, RefusalDelta):
            self.is_plain_text = False
            self._add_text(event.text)
        elif isinstance(event, CallArguments):
            self.chars += len(event.delta)
            self._calls[event.call_id].arguments.add(event.delta)
        elif isinstance(event, CallFinished):
            self._calls[event.call_id].is_whole = not event.is_cut
        elif isinstance(event, ModelFinished):
            self._finish = event
        else:
            self._add_entry(event)

    def _add_text(self, text: str) -> None:
        self.has_deltas = True
        self.chars += len(text)
        if self._message is None:
            self._message = _Message()
            self._entries.append(self._message)
        self._message.content.add(text)

    def _add_entry(self, event: ModelEvent) -> None:
        if isinstance(event, MessageStarted):
            self._message = _Message(event.phase)
            self._entries.append(self._message)
        elif isinstance(event, CallStarted):
            call = _Call(event)
            self._calls[event.call_id] = call
            self._append(call)
        elif isinstance(event, ReasoningSealed):
            sealed = event.encrypted_content
            self._append({"type": "reasoning", "summary": [], "encrypted_content": sealed})
        elif isinstance(event, OpaqueItem):
            self._append(event.item)
        elif isinstance(event, Annotation):
            self.has_deltas = True
        elif isinstance(event, UpstreamPosition | UpstreamAbandoned):
            self.runs_upstream = isinstance(event, UpstreamPosition)

    def _append(self, entry: "Item | _Call") -> None:
        self.has_deltas = True
        self.is_plain_text = False
        self._message = None
        self._entries.append(entry)

    @property
    def finish(self) -> ModelFinished:
        """How the last request ended."""
        if self._finish is None:
            raise ModelFailed(
                "The model's stream ended without a finish reason.", is_transient=True
            )
        return self._finish

    def calls(self) -> list[ToolCall]:
        """The calls of the last request that may be run."""
        return [call.as_tool_call() for call in self._calls.values() if call.is_whole]

    def cut_calls(self) -> list[CallStarted]:
        """The calls of the last request that broke off."""
        return [call.started for call in self._calls.values() if not call.is_whole]

    def request_items(self) -> list[Item]:
        """The answer to the last request."""
        return _as_items(self._entries[self._request_start :])

    def items(self) -> list[Item]:
        """The answer of the whole round."""
        return _as_items(self._entries)

    def cut_call_ids(self) -> set[str]:
        cut_ids: set[str] = set()
        for entry in self._entries:
            if isinstance(entry, _Call) and not entry.is_whole:
                cut_ids.add(entry.started.call_id)
        return cut_ids


class _Message:
    def __init__(self, phase: str | None = None) -> None:
        self.phase = phase
        self.content = TextBuffer()


class _Call:
    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.arguments = TextBuffer()
        self.is_whole = False

    def as_item(self) -> Item:
        item: Item = {
            "type": self.started.kind,
            "call_id": self.started.call_id,
            "name": self.started.name,
        }
        if self.started.kind == "custom_tool_call":
            item["input"] = self.arguments.text()
        else:
            item["arguments"] = self.arguments.text()
        return item

    def as_tool_call(self) -> ToolCall:
        return ToolCall(self.started.call_id, self.started.name, self.arguments.text())


def _as_items(entries: Sequence[Item | _Message | _Call]) -> list[Item]:
    """In order, without the calls that were cut: no output can follow those."""
    items: list[Item] = []
    for entry in entries:
        item = _as_item(entry)
        if item is not None:
            items.append(item)
    return without_dangling_reasoning(items)


def _as_item(entry: Item | _Message | _Call) -> Item | None:
    if isinstance(entry, _Call):
        if not entry.is_whole:
            return None
        return entry.as_item()
    if isinstance(entry, _Message):
        text = entry.content.text()
        if not text:
            return None
        content: list[ContentPart] = [{"type": "output_text", "text": text}]
        message: Item = {"type": "message", "role": "assistant", "content": content}
        if entry.phase:
            message["phase"] = entry.phase
        return message
    return entry


def follow(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call with the answer of a round; the outputs of its calls come next."""
    return _with_cut_ids(call.followed_by(answer.items()), answer)


def continued(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call that shows the model its answer up to a cut, where it is to go on exactly."""
    received = answer.request_items()
    if not received:
        return replace(call, is_retry=True, resume=None)
    cut_at = CutAt.BEHIND
    if answer.is_plain_text and call.cut_at is not CutAt.BEHIND:
        cut_at = CutAt.TEXT
    items = _answered(call, received)
    again = replace(call, items=items, is_retry=True, cut_at=cut_at, resume=None)
    return _with_cut_ids(again, answer)


def with_note(call: ModelCall) -> ModelCall:
    """Ask for the rest of an answer that was cut off in words, where there is no exact way."""
    if call.cut_at is None:
        return call
    return replace(call, items=[*call.items, as_note(CONTINUE)], cut_at=None)


def interrupted(call: ModelCall, answer: AnswerBuffer, note: str) -> ModelCall:
    """The call again, followed by its partial answer and a note about the interruption."""
    items = [*_answered(call, answer.request_items()), as_note(note)]
    again = replace(call, items=items, is_retry=True, cut_at=None, resume=None)
    return _with_cut_ids(again, answer)


def _answered(call: ModelCall, received: list[Item]) -> list[Item]:
    if call.cut_at is None:
        return call.items + received
    return with_rest(call.items, received)


def _with_cut_ids(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The ids of calls that were cut are in no item, and may not be used again."""
    cut_ids = answer.cut_call_ids()
    if not cut_ids:
        return call
    return replace(call, used_call_ids=call.used_call_ids | cut_ids)
