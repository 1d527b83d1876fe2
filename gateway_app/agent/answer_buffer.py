"""What a model said, for its tools, for the next call, and for going on after a cut."""

from dataclasses import replace

import orjson

from gateway_app.agent.context import as_note, without_idle_thoughts
from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    Cut,
    Item,
    MessageStarted,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    Quirk,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
)
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.text_buffer import TextBuffer

CONTINUE = (
    "Your answer above was cut off by a lost connection. Go on exactly where it stops: "
    "repeat nothing of it, and do not comment on the interruption."
)


class Said:
    """Notes the events of one round, or of a part of it."""

    def __init__(self) -> None:
        self.has_deltas = False  # did anybody hear anything?
        self.chars = 0  # of everything the model wrote
        self._entries: list[Item | _Text | _Call] = []
        self._calls: dict[str, _Call] = {}
        self._finish: ModelFinished | None = None

    def note(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):  # nearly all of them
            self.has_deltas = True
            self.chars += len(event.text)
            self._text().words.add(event.text)
        elif isinstance(event, ModelFinished):
            self._finish = event
        elif isinstance(event, Cut | MessageStarted):  # what follows is a message of its own
            self._entries.append(_Text(event.phase if isinstance(event, MessageStarted) else None))
        elif not isinstance(event, Quirk):
            self.has_deltas = True
            self._note_delta(event)

    def _note_delta(self, event: ModelEvent) -> None:
        if isinstance(event, RefusalDelta | ReasoningDelta):
            self.chars += len(event.text)
        if isinstance(event, RefusalDelta):
            self._text().words.add(event.text)
        elif isinstance(event, ReasoningSealed):
            self._entries.append(
                {"type": "reasoning", "summary": [], "encrypted_content": event.encrypted_content}
            )
        elif isinstance(event, OpaqueItem):
            self._entries.append(event.item)
        elif isinstance(event, CallStarted):
            self._calls[event.call_id] = _Call(event)
            self._entries.append(self._calls[event.call_id])
        elif isinstance(event, CallArguments):
            self.chars += len(event.delta)
            self._calls[event.call_id].words.add(event.delta)
        elif isinstance(event, CallFinished):
            self._calls[event.call_id].is_whole = not event.is_cut

    def _text(self) -> "_Text":
        last = self._entries[-1] if self._entries else None
        if not isinstance(last, _Text):
            last = _Text()
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
        return [call.tool_call() for call in self._calls.values() if call.is_whole]

    def cut_calls(self) -> list[CallStarted]:
        return [call.started for call in self._calls.values() if not call.is_whole]

    def items(self) -> list[Item]:
        """Everything in order, without the calls that were cut: nothing can answer those."""
        return without_idle_thoughts(
            [item for entry in self._entries if (item := _as_item(entry)) is not None]
        )


class _Text:
    def __init__(self, phase: str | None = None) -> None:
        self.phase = phase
        self.words = TextBuffer()


class _Call:
    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.words = TextBuffer()
        self.is_whole = False

    def tool_call(self) -> ToolCall:
        return ToolCall(self.started.call_id, self.started.name, self.words.text())


def _as_item(entry: Item | _Text | _Call) -> Item | None:
    if isinstance(entry, _Call):
        call = entry.tool_call()
        item = {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
        return item if entry.is_whole else None
    if isinstance(entry, _Text):
        text = entry.words.text()
        content = [{"type": "output_text", "text": text}]
        phase = {"phase": entry.phase} if entry.phase else {}
        return (
            {"type": "message", "role": "assistant", "content": content, **phase} if text else None
        )
    return entry


def follow(call: ModelCall, said: Said) -> ModelCall:
    """The call with what was said in a round; the outputs of its calls come next."""
    return _without_ids_of(said, call.followed_by(said.items()))


def continued(call: ModelCall, said: Said) -> ModelCall:
    """The call that shows the model what it said before a cut and asks it to go on exactly there."""
    return interrupted(call, said, CONTINUE) if said.items() else replace(call, is_retry=True)


def interrupted(call: ModelCall, said: Said, note: str) -> ModelCall:
    """The call again, behind what was said of its answer and a word on what became of it."""
    items = [*call.items, *said.items(), as_note(note)]
    return _without_ids_of(said, replace(call, items=items, is_retry=True))


def is_whole(arguments: str) -> bool:
    """A JSON object ends by itself: nothing of it can be missing."""
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _without_ids_of(said: Said, call: ModelCall) -> ModelCall:
    cut = {started.call_id for started in said.cut_calls()}
    return replace(call, used_call_ids=call.used_call_ids | cut) if cut else call
