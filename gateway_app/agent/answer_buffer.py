"""The answer of a model: for its tools, for the next call, and to continue it after a cut."""

from dataclasses import replace
from itertools import pairwise

from gateway_app.agent.answer_entries import Call, Entry, Message, Reasoning, as_items
from gateway_app.agent.context import as_note
from gateway_app.agent.cut_message import with_rest
from gateway_app.agent.events import (
    Annotation,
    CallArguments,
    CallFinished,
    CallStarted,
    ItemState,
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
from responses_app.protocol.items import Item
from responses_app.protocol.text_buffer import TextBuffer

CONTINUE = (
    "Your answer above was cut off by a lost connection. Go on exactly where it stops: "
    "repeat nothing of it, and do not comment on the interruption."
)


class AnswerBuffer:
    """Collects the answer of one round, which may take several requests.

    A message whose text goes straight to a listener shares the listener's buffer, so the text is
    kept once. Everything else is collected here, also summaries and calls that no client sees.
    """

    def __init__(self) -> None:
        self._entries: list[Item | Entry] = []
        self._message: Message | None = None
        self._starts: list[int] = []  # of the requests, in the entries
        self.runs_upstream = False  # also without a connection
        self.begin_request()

    def begin_request(self, provider: str = "") -> None:
        """What follows is the answer to another request of the round, from this provider."""
        self.has_deltas = False  # whether the client got anything of it
        self.is_unmarked = False  # reasoning began, and its log does not name the provider yet
        self.chars = 0  # of everything the model wrote
        self.is_plain_text = True
        self._provider = provider
        if self._message is not None:  # the request before broke off in it
            self._message.is_cut = True
        # The last entry, if text or reasoning can be added to it.
        self._message = None
        self._reasoning: Reasoning | None = None
        self._starts.append(len(self._entries))
        self._calls: dict[str, Call] = {}
        self._finish: ModelFinished | None = None

    def add(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):  # the most frequent event
            self._add_text(event.text)
        elif isinstance(event, ReasoningDelta):
            self._add_reasoning(event)
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
            self._message = self._begin_message(None)
        self._message.add(text)

    def shares(self, recorded: TextBuffer | None) -> bool:
        """Whether the open message is kept in the buffer of its listener, which alone extends it."""
        return self._message is not None and self._message.shares(recorded)

    def _begin_message(self, phase: str | None) -> Message:
        self._message = Message(phase)
        self._reasoning = None
        self._entries.append(self._message)
        return self._message

    def _add_reasoning(self, delta: ReasoningDelta) -> None:
        self.chars += len(delta.text)
        reasoning = self._reasoning
        if reasoning is None or reasoning.is_summary != delta.is_summary:
            reasoning = self._begin_reasoning(self._provider, is_summary=delta.is_summary)
            self.is_unmarked = bool(self._provider)
        reasoning.text.add(delta.text)

    def _begin_reasoning(self, provider: str, *, is_summary: bool) -> Reasoning:
        reasoning = Reasoning(is_summary=is_summary)
        reasoning.add_state(provider, {})
        self._append(reasoning)
        self._reasoning = reasoning
        return reasoning

    def _end_reasoning(self, sealed: ReasoningSealed) -> None:
        reasoning = self._reasoning
        if reasoning is None:
            reasoning = self._begin_reasoning(sealed.provider, is_summary=True)
        reasoning.encrypted_content = sealed.encrypted_content
        self._reasoning = None

    def mark(self) -> ItemState:
        """The origin of the reasoning that has just begun."""
        self.is_unmarked = False
        return ItemState({}, self._provider)

    def _add_entry(self, event: ModelEvent) -> None:
        if isinstance(event, MessageStarted):
            self._begin_message(event.phase)
        elif isinstance(event, CallStarted):
            call = Call(event)
            self._calls[event.call_id] = call
            self._append(call)
        elif isinstance(event, ReasoningSealed):
            self._end_reasoning(event)
        elif isinstance(event, ItemState):
            self._add_state(event)
        elif isinstance(event, OpaqueItem):
            self._append(event.item)
        elif isinstance(event, Annotation):
            self.has_deltas = True
        elif isinstance(event, UpstreamPosition | UpstreamAbandoned):
            self.runs_upstream = isinstance(event, UpstreamPosition)

    def _append(self, entry: Item | Entry) -> None:
        self.has_deltas = True
        self.is_plain_text = False
        self._message = None
        self._reasoning = None
        self._entries.append(entry)

    def _add_state(self, event: ItemState) -> None:
        entry: Item | Entry | None = self._calls.get(event.call_id)
        if entry is None and len(self._entries) > self._starts[-1]:
            entry = self._entries[-1]
        if isinstance(entry, Entry):
            entry.add_state(event.provider, event.state)

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
        return as_items(self._entries[self._starts[-1] :])

    def items(self) -> list[Item]:
        """The answer of the whole round; a message that broke off and its rest are one."""
        items: list[Item] = []
        for start, end in pairwise([*self._starts, len(self._entries)]):
            received = as_items(self._entries[start:end])
            if items and items[-1].get("status") == "incomplete":
                items = with_rest(items, received)
            else:
                items += received
        return items

    def cut_call_ids(self) -> set[str]:
        cut_ids: set[str] = set()
        for entry in self._entries:
            if isinstance(entry, Call) and not entry.is_whole:
                cut_ids.add(entry.started.call_id)
        return cut_ids


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
