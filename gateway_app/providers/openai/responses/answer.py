"""The stream of OpenAI's Responses API as the events of a model."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from gateway_app.agent.events import (
    Annotation,
    ItemState,
    MessageStarted,
    ModelEvent,
    ModelFailed,
    OpaqueItem,
    ProtocolDeviation,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.answer import Answer, Protocol
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.errors import failure_in
from gateway_app.providers.openai.responses.item_tracker import ItemTracker, OutputItem
from gateway_app.providers.openai.responses.request import (
    CALL_CONTEXT,
    CONTEXT_STATE,
    open_responses,
    responses_body,
)
from gateway_app.providers.openai.sse import Event, WholeAnswer
from gateway_app.providers.openai.state import opaque
from gateway_app.providers.openai.usage import newer, read_usage
from responses_app.protocol import events
from responses_app.protocol.items import CALLS, ContentPart, Item

MAX_NAME_CHARS = 60
# Every other kind of item is passed on as a whole.
_KNOWN_KINDS = ("message", "reasoning", *CALLS)
_REPEATED_KINDS = ("message", *CALLS)
_OPENING = (events.CREATED, events.QUEUED, events.IN_PROGRESS)
_TERMINAL = (events.COMPLETED, events.INCOMPLETE, events.FAILED)
_FUNCTION_ARGUMENTS = (events.ARGUMENTS_DELTA, events.ARGUMENTS_DONE)
_CUSTOM_INPUT = (events.CUSTOM_INPUT_DELTA, events.CUSTOM_INPUT_DONE)
# Event type -> the kind of its item, and the event it becomes.
_OTHER_DELTAS: dict[str, tuple[str, Callable[[str], ModelEvent]]] = {
    events.REFUSAL_DELTA: ("message", RefusalDelta),
    events.SUMMARY_DELTA: ("reasoning", partial(ReasoningDelta, is_summary=True)),
    events.REASONING_DELTA: ("reasoning", ReasoningDelta),
    events.OPEN_REASONING_DELTA: ("reasoning", ReasoningDelta),
}


def _item_of(event: Event) -> tuple[object, object]:
    return event.get("item_id"), event.get("output_index")


class ResponsesAnswer(Answer):
    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        super().__init__(call, upstream)
        self._has_begun = False
        self._has_usage = False  # outside the terminal event
        self._tracker = ItemTracker()
        self._text_item: tuple[object, object] | None = None  # of the last text that was read

    def is_last(self, event: Event) -> bool:
        return event.get("type") in _TERMINAL

    def read(self, event: Event) -> Iterator[ModelEvent]:
        kind = str(event.get("type"))
        if not self._has_begun:
            yield from self._begin(kind)
        if kind == events.TEXT_DELTA:
            self._text_item = _item_of(event)
            delta = self._received_delta(event, "message")
            if delta:
                yield from self.emit_text(self.text_delta(delta, event.get("logprobs")))
        elif kind in _OTHER_DELTAS:
            item_kind, make_event = _OTHER_DELTAS[kind]
            delta = self._received_delta(event, item_kind)
            if delta:
                yield from self.calls.emit(make_event(delta))
        elif kind == events.ITEM_ADDED:
            item = self._tracker.find(event, event["item"]["type"])
            yield from self._item_added(item, event["item"])
        elif kind == events.ITEM_DONE:
            item = self._tracker.find(event, event["item"]["type"])
            yield from self._item_done(item, event["item"])
        elif kind in _TERMINAL:
            yield from self._end(kind, event["response"])
        else:
            yield from self._read_other(kind, event)

    def text_alone(self, event: Event) -> str | None:
        """Of the message whose beginning was read: its item is known."""
        is_text = event.get("type") == events.TEXT_DELTA and not event.get("logprobs")
        if not is_text or _item_of(event) != self._text_item:
            return None
        text = event.get("delta")
        if isinstance(text, str) and text:
            return text
        return None

    def _read_other(self, kind: str, event: Event) -> Iterator[ModelEvent]:
        if kind in _OPENING:
            return
        if kind in _FUNCTION_ARGUMENTS:
            yield from self._arguments(self._tracker.find(event, "function_call"), event)
            return
        if kind in _CUSTOM_INPUT:
            yield from self._arguments(self._tracker.find(event, "custom_tool_call"), event)
            return
        if kind == events.SUMMARY_PART_ADDED and event.get("summary_index"):
            yield from self.calls.emit(ReasoningDelta("\n\n", is_summary=True))
            return
        annotation = event.get("annotation")
        if kind == events.ANNOTATION_ADDED and isinstance(annotation, dict):
            yield from self.calls.emit(Annotation(opaque(annotation)))
            return
        # Relays send usage in events of their own, and may leave out the terminal event.
        response = event.get("response")
        given = event.get("usage")
        if not given and isinstance(response, dict):
            given = response.get("usage")
        usage = read_usage(given)
        if usage != Usage():
            self.usage = newer(self.usage, usage)
            self._has_usage = True

    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]:
        yield ProtocolDeviation("a whole answer")
        if body.get("status") == "failed":
            raise failure_in(body.get("error") or {})
        yield from self._end(f"response.{body.get('status')}", body)

    def has_output(self) -> bool:
        return bool(self._tracker.items)

    def has_nameless_call(self) -> bool:
        return any(item.kind in CALLS and not item.call_id for item in self._tracker.items)

    def is_marked_finished(self, *, is_clean: bool) -> bool:
        items = self._tracker.items
        if not items:
            return False
        if self._has_usage:
            return True
        return is_clean and all(item.is_done for item in items)

    def _begin(self, kind: str) -> Iterator[ModelEvent]:
        """Relays leave out the first event or put their own before it; OpenAI never does."""
        self._has_begun = True
        if kind == events.CREATED:
            return
        named = kind[:MAX_NAME_CHARS]
        if self.upstream.is_openai:
            raise ModelFailed(
                f"The model's server broke its protocol: expected response.created before {named}."
            )
        yield ProtocolDeviation(f"no response.created before {named}")

    def _received_delta(self, event: Event, kind: str) -> str:
        item = self._tracker.find(event, kind)
        delta = str(event.get("delta") or "")
        item.received += len(delta)
        return delta

    def _item_added(self, item: OutputItem, given: Item) -> Iterator[ModelEvent]:
        is_new = not item.is_announced and not item.received
        item.is_announced = True
        if is_new:
            yield from self.end_text()
        if given["type"] == "message" and is_new:
            self.begin_message()
            phase = given.get("phase")
            if not isinstance(phase, str):
                phase = None
            yield from self.calls.emit(MessageStarted(phase))
        if given["type"] in CALLS and not item.call_id and given.get("name"):
            started = self.calls.start(given.get("call_id") or "", given["name"])
            item.call_id = started.call_id
            yield started

    def _arguments(self, item: OutputItem, event: Event) -> Iterator[ModelEvent]:
        """Piece by piece, or the rest where a server does not stream them."""
        if not item.call_id:
            return
        whole = event.get("arguments", event.get("input"))
        if whole is None:
            delta = event.get("delta") or ""
        else:
            delta = whole[item.received :]
        item.received += len(delta)
        yield from self.calls.arguments(item.call_id, delta)

    def _item_done(self, item: OutputItem, given: Item) -> Iterator[ModelEvent]:
        if item.is_done:
            return
        item.is_done = True
        self.add_upstream_id(given.get("id"))
        yield from self._item_added(item, given)
        if item.call_id:
            arguments = given.get("arguments") or given.get("input") or ""
            yield from self._arguments(item, {"arguments": arguments})
            yield from self._context(item, given)
            if given.get("status") != "incomplete":
                yield from self.calls.finish(item.call_id)
        elif given["type"] not in _KNOWN_KINDS:
            yield from self.calls.emit(OpaqueItem(opaque(given)))
        elif not item.received:
            for event in self._whole_item(given):
                if isinstance(event, TextDelta):
                    yield from self.emit_text(event)
                else:
                    yield from self.calls.emit(event)
        if given["type"] == "message":
            yield from self.end_text()
        if given["type"] == "reasoning" and given.get("encrypted_content"):
            sealed = ReasoningSealed(given["encrypted_content"], self.identity)
            yield from self.calls.emit(sealed)

    def _context(self, item: OutputItem, given: Item) -> Iterator[ModelEvent]:
        """The fields of a call that only the upstream understands."""
        fields = cast(dict[str, Any], given)
        context: dict[str, Any] = {}
        for name in CALL_CONTEXT:
            if fields.get(name) is not None:
                context[name] = opaque(fields[name])
        if context:
            yield ItemState({CONTEXT_STATE: context}, self.identity, item.call_id)

    def _whole_item(self, given: Item) -> Iterator[ModelEvent]:
        """An item that came without deltas."""
        for part in given.get("summary") or ():
            yield ReasoningDelta(part["text"], is_summary=True)
        content = cast(list[ContentPart], given.get("content") or [])
        for part in content:
            if "refusal" in part:
                yield RefusalDelta(part["refusal"])
            elif given["type"] == "reasoning":
                yield ReasoningDelta(part["text"])
            else:
                yield self.text_delta(part["text"], part.get("logprobs"))
            for annotation in part.get("annotations") or ():
                yield Annotation(opaque(annotation))

    def _end(self, kind: str, response: dict[str, Any]) -> Iterator[ModelEvent]:
        self.usage = newer(self.usage, read_usage(response.get("usage")))
        self.add_upstream_id(response.get("id"))
        if kind == events.FAILED:
            raise failure_in(response.get("error") or {})
        is_cut = kind == events.INCOMPLETE
        streamed = {item.kind for item in self._tracker.items}
        for index, given in enumerate(response.get("output") or ()):
            if not self._is_left_out(given, streamed):
                continue
            event: Event = {"item": given}
            if not streamed:
                event |= {"type": events.ITEM_DONE, "output_index": index}
            item = self._tracker.find(event, given["type"])
            if is_cut and given["type"] == "function_call":
                # In an answer that was cut, only its arguments show whether a call is complete.
                given = given | {"status": "incomplete"}
            yield from self._item_done(item, given)
        self.reason = "stop"
        if is_cut:
            details = response.get("incomplete_details") or {}
            self.reason = "length"
            if details.get("reason") == "content_filter":
                self.reason = "content_filter"

    def _is_left_out(self, given: Item, streamed: set[str]) -> bool:
        """Must this item of the final response be read too?

        Items that were streamed are complete. Of the others, only kinds that were not streamed at
        all are added: an item of a streamed kind may be a repetition.
        """
        if not streamed or self._tracker.is_known_call(given):
            return True
        return given["type"] in _REPEATED_KINDS and given["type"] not in streamed


CODEX_RESPONSES = Protocol(responses_body, open_responses, ResponsesAnswer)
