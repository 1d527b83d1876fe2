"""The answer of a model as it comes in: for its tools, for the next call, and to continue it after a cut."""

from dataclasses import replace

from gateway_app.agent.context import as_note, without_dangling_reasoning
from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    Cut,
    Item,
    MessageStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    ProtocolDeviation,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.text_buffer import TextBuffer

CONTINUE = (
    "Your answer above was cut off by a lost connection. Go on exactly where it stops: "
    "repeat nothing of it, and do not comment on the interruption."
)


class AnswerBuffer:
    """Collects the events of one round, or of one request of it."""

    def __init__(self) -> None:
        self.has_deltas = False  # whether the client got anything of it
        self.chars = 0  # of everything the model wrote
        self._entries: list[Item | _Message | _Call] = []
        self._calls: dict[str, _Call] = {}
        self._finish: ModelFinished | None = None

    def add(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):  # the most frequent event
            self.has_deltas = True
            self.chars += len(event.text)
            self._open_message().text.add(event.text)
        elif isinstance(event, ModelFinished):
            self._finish = event
        elif isinstance(event, MessageStarted):
            self._entries.append(_Message(event.phase))
        elif isinstance(event, Cut):  # what follows is a message of its own
            self._entries.append(_Message())
        elif not isinstance(event, ProtocolDeviation):
            self.has_deltas = True
            self._add_delta(event)

    def _add_delta(self, event: ModelEvent) -> None:
        if isinstance(event, RefusalDelta):
            self.chars += len(event.text)
            self._open_message().text.add(event.text)
        elif isinstance(event, ReasoningDelta):
            self.chars += len(event.text)
        elif isinstance(event, ReasoningSealed):
            self._entries.append(
                {"type": "reasoning", "summary": [], "encrypted_content": event.encrypted_content}
            )
        elif isinstance(event, OpaqueItem):
            self._entries.append(event.item)
        elif isinstance(event, CallStarted):
            call = _Call(event)
            self._calls[event.call_id] = call
            self._entries.append(call)
        elif isinstance(event, CallArguments):
            self.chars += len(event.delta)
            self._calls[event.call_id].arguments.add(event.delta)
        elif isinstance(event, CallFinished):
            self._calls[event.call_id].is_whole = not event.is_cut

    def _open_message(self) -> "_Message":
        last = self._entries[-1] if self._entries else None
        if not isinstance(last, _Message):
            last = _Message()
            self._entries.append(last)
        return last

    @property
    def finish(self) -> ModelFinished:
        if self._finish is None:
            raise ModelFailed(
                "The model's stream ended without a finish reason.", is_transient=True
            )
        return self._finish

    def calls(self) -> list[ToolCall]:
        """The calls that may be run."""
        return [call.as_tool_call() for call in self._calls.values() if call.is_whole]

    def cut_calls(self) -> list[CallStarted]:
        return [call.started for call in self._calls.values() if not call.is_whole]

    def items(self) -> list[Item]:
        """The answer in order, without the calls that were cut: no output can follow those."""
        items: list[Item] = []
        for entry in self._entries:
            item = _as_item(entry)
            if item is not None:
                items.append(item)
        return without_dangling_reasoning(items)


class _Message:
    def __init__(self, phase: str | None = None) -> None:
        self.phase = phase
        self.text = TextBuffer()


class _Call:
    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.arguments = TextBuffer()
        self.is_whole = False

    def as_tool_call(self) -> ToolCall:
        return ToolCall(self.started.call_id, self.started.name, self.arguments.text())


def _as_item(entry: Item | _Message | _Call) -> Item | None:
    if isinstance(entry, _Call):
        if not entry.is_whole:
            return None
        return {
            "type": "function_call",
            "call_id": entry.started.call_id,
            "name": entry.started.name,
            "arguments": entry.arguments.text(),
        }
    if isinstance(entry, _Message):
        text = entry.text.text()
        if not text:
            return None
        content = [{"type": "output_text", "text": text}]
        message: Item = {"type": "message", "role": "assistant", "content": content}
        if entry.phase:
            message["phase"] = entry.phase
        return message
    return entry


def follow(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call with the answer of a round; the outputs of its calls come next."""
    return _without_ids_of(answer, call.followed_by(answer.items()))


def continued(call: ModelCall, answer: AnswerBuffer) -> ModelCall:
    """The call that shows the model its answer up to a cut and asks it to go on exactly there."""
    if not answer.items():
        return replace(call, is_retry=True)
    return interrupted(call, answer, CONTINUE)


def interrupted(call: ModelCall, answer: AnswerBuffer, note: str) -> ModelCall:
    """The call again, followed by its partial answer and a note about the interruption."""
    items = call.items + answer.items() + [as_note(note)]
    return _without_ids_of(answer, replace(call, items=items, is_retry=True))


def _without_ids_of(answer: AnswerBuffer, call: ModelCall) -> ModelCall:
    """The ids of calls that were cut are in no item, and stay taken."""
    cut_ids = {started.call_id for started in answer.cut_calls()}
    if not cut_ids:
        return call
    return replace(call, used_call_ids=call.used_call_ids | cut_ids)
