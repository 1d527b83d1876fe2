"""Answers that run at the upstream by themselves (background mode), and are picked up after a cut.

The upstream numbers its events and sends them again from any number on. A lost connection costs
nothing: the same answer goes on. After a crash, the log has the last position and what came behind
it; exactly that is dropped from what the upstream sends again.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from gateway_app.agent.events import (
    Annotation,
    ModelEvent,
    ModelFailed,
    OpaqueItem,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
    UpstreamPosition,
)
from gateway_app.agent.model_call import ModelCall, ResumePoint
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient, opened
from gateway_app.providers.openai.event_reader import Takes
from gateway_app.providers.openai.exchange import Exchange
from gateway_app.providers.openai.requests import UNREAD, unread
from gateway_app.providers.openai.responses.answer import ResponsesAnswer
from gateway_app.providers.openai.responses.item_tracker import OutputItem
from gateway_app.providers.openai.sse import Event, WholeAnswer, cut_off
from responses_app.protocol import events as event_types
from responses_app.protocol.items import Item
from responses_app.protocol.text_buffer import clean_text

BACKGROUND = "background mode"
PICK_UP = "answer to pick up"
POSITION_EVENTS = 50  # between two positions: one of them is a small event of the log
MAX_RECONNECTS = 6  # in a row without an event
RECONNECT_SECS = 0.2  # before the first; doubled for each further one
_FIELDS = {"background": True, "store": True}
_COUNTED = (Annotation, OpaqueItem, ReasoningSealed)


def can_run_in_background(call: ModelCall, upstream: Upstream) -> bool:
    if upstream.api_mode != "codex_responses" or not upstream.options.get("upstream_resume"):
        return False
    # The upstream would go on behind a stop sequence, which only this server knows.
    has_stop = bool(call.chat_extras.get("stop"))
    # A document may be held back until it is checked, and a position would cover what is not logged.
    if has_stop or call.is_formatted:
        return False
    return upstream.preset.resumes_background and call.is_stored


def in_background(body: dict[str, Any]) -> dict[str, Any]:
    return body | _FIELDS


def reopen(client: UpstreamClient, response_id: str, cursor: int, headers: Any) -> Opening:
    retrieve = client.sdk.responses.retrieve
    asked = headers | UNREAD
    sent = retrieve(response_id, stream=True, starting_after=cursor, extra_headers=asked)
    return opened(unread(sent))


class BackgroundAnswer(ResponsesAnswer):
    """Reports its position now and then, and drops what the log already has."""

    def __init__(
        self, call: ModelCall, upstream: Upstream, resume: ResumePoint | None = None
    ) -> None:
        super().__init__(call, upstream)
        self.response_id = ""
        self.cursor = -1
        self._is_resumed = resume is not None
        self._left: dict[type, int] = {}  # to drop: characters, or events that have none
        self._unreported = 0
        self.begin_message()
        if resume is not None:
            self._has_begun = True
            self.response_id = resume.position.response_id
            self.cursor = resume.position.cursor
            self._left = dict(resume.received)

    def begin_message(self) -> None:
        """Without think tags: they hold text back, and a position would cover what is not logged."""
        super().begin_message()
        self._think_tags.is_over = True

    def text_alone(self, event: Event) -> str | None:
        """None: each event moves the position, and some of them are dropped."""
        return None

    def read(self, event: Event) -> Iterator[ModelEvent]:
        number = event.get("sequence_number")
        if isinstance(number, int) and number <= self.cursor:
            return
        for model_event in super().read(event):
            if self._left:
                yield from self._without_received(model_event)
            else:
                yield model_event
        if isinstance(number, int):
            yield from self._moved_to(number, event)

    def _moved_to(self, number: int, event: Event) -> Iterator[ModelEvent]:
        is_first = event.get("type") == event_types.CREATED
        if is_first:
            self.response_id = str(event["response"]["id"])
        self.cursor = number
        self._unreported += 1
        is_due = is_first or self._unreported >= POSITION_EVENTS
        # What an open call holds back, and what is still dropped, is not behind the position.
        if is_due and self.response_id and not self._left and not self.calls.is_any_open:
            self._unreported = 0
            yield UpstreamPosition(self.identity, self.response_id, number)

    def _item_done(self, item: OutputItem, given: Item) -> Iterator[ModelEvent]:
        is_continued = self._is_resumed and not item.is_announced
        if is_continued and given["type"] in ("message", "reasoning"):
            # The log has its beginning: the whole item would repeat it.
            item.is_announced = True
            item.received += 1
        yield from super()._item_done(item, given)

    def _is_left_out(self, given: Item, streamed: set[str]) -> bool:
        """Items from before the position are not missing."""
        return not self._is_resumed and super()._is_left_out(given, streamed)

    def _without_received(self, event: ModelEvent) -> Iterator[ModelEvent]:
        kind = type(event)
        left = self._left.get(kind, 0)
        if not left:
            yield event
        elif isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
            text = clean_text(event.text)
            self._drop(kind, min(left, len(text)))
            if len(text) > left:
                yield _rest(event, text[left:])
        elif isinstance(event, _COUNTED):
            self._drop(kind, 1)
        else:
            yield event

    def _drop(self, kind: type, count: int) -> None:
        self._left[kind] -= count
        if not self._left[kind]:
            del self._left[kind]


def _rest(delta: TextDelta | ReasoningDelta | RefusalDelta, text: str) -> ModelEvent:
    """Log probabilities belong to whole tokens, and can't be cut."""
    if isinstance(delta, TextDelta):
        return TextDelta(text)
    return replace(delta, text=text)


@dataclass
class BackgroundExchange(Exchange):
    """An answer over as many connections as it takes."""

    answer: BackgroundAnswer
    _lost: ModelFailed | None = field(default=None, init=False)  # how the last connection ended
    _reconnects: int = field(default=0, init=False)  # since the last event

    form = BACKGROUND

    async def events(
        self, headers: dict[str, Any], tokens: int, takes: Takes | None
    ) -> AsyncGenerator[list[Event]]:
        """``takes`` is left out: each event moves the cursor."""
        opening = self._first_opening(headers)
        has_begun = False
        while True:
            try:
                received = self.client.events(opening, self.answer.is_last, tokens)
                async with aclosing(received):
                    async for batch in received:
                        has_begun = True
                        self._lost = None
                        yield batch
                        last = batch[-1]
                        if isinstance(last, WholeAnswer) or self.answer.is_last(last):
                            return
                failure = cut_off("it ended before its last event")
            except ModelFailed as found:
                failure = found
            if not has_begun:
                raise failure
            await self._wait_after(failure)
            opening = reopen(self.client, self.answer.response_id, self.answer.cursor, headers)

    def _first_opening(self, headers: dict[str, Any]) -> Opening:
        return self.open(self.client, self.body, headers)

    async def _wait_after(self, failure: ModelFailed) -> None:
        """Raises how the connection was lost, if the upstream does not have the answer any more."""
        if self._lost is None:
            self._lost = failure
            self._reconnects = 0
        is_over = not failure.is_transient or self._reconnects == MAX_RECONNECTS
        if is_over or not self.answer.response_id:
            raise self._lost
        await asyncio.sleep(RECONNECT_SECS * 2**self._reconnects)
        self._reconnects += 1


@dataclass
class PickUpExchange(BackgroundExchange):
    """The rest of an answer that another process asked for."""

    form = PICK_UP

    def _first_opening(self, headers: dict[str, Any]) -> Opening:
        return reopen(self.client, self.answer.response_id, self.answer.cursor, headers)
