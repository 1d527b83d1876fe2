"""Answers that run at the upstream by themselves: a lost connection or process costs nothing of them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.events import (
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UpstreamAbandoned,
    UpstreamPosition,
)
from gateway_app.agent.model_call import CutAt, ModelCall, ResumePoint
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.provider import OpenAIProvider
from gateway_app.providers.openai.responses import background
from gateway_app.providers.openai.responses.background import POSITION_EVENTS, BackgroundAnswer
from gateway_app.runtime.recorder import Recorder
from gateway_app.runtime.upstream_log import UpstreamLog
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import UPSTREAM_POSITION, Event
from responses_app.protocol.items import Item
from tests.support.background_stub import BackgroundStub
from tests.support.output_builders import RESPONSE_ID, created_event
from tests.support.providers import CALL, record_round

STORED = replace(CALL, is_stored=True)
ASKED = {"background": True, "store": True, "stream": True}
CUT_TEXT: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one two "}]}


@pytest.fixture
def upstream() -> Iterator[BackgroundStub]:
    with BackgroundStub() as running:
        yield running


@asynccontextmanager
async def provider_of(upstream: BackgroundStub, **options: Any) -> AsyncIterator[OpenAIProvider]:
    given = {"upstream_resume": True, **options}
    made = OpenAIProvider(
        Upstream("openai", "m", base_url=upstream.url, api_key="k-1", api_mode="codex_responses", options=given)
    )
    try:
        yield made
    finally:
        await made.aclose()


def asked_with(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body.get(name) for name in ASKED}


# -- in one process ---------------------------------------------------------------------
async def test_a_lost_connection_goes_on_in_the_same_item(upstream: BackgroundStub, monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "RECONNECT_SECS", 0.001)
    upstream.cuts = [3, 3, 5]  # the second connection brings nothing
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
    assert (recorded.text, recorded.cuts, recorded.finish.reason) == ("one two three four", 0, "stop")
    assert ([asked_with(body) for body in upstream.posts], upstream.picked_up) == ([ASKED], [2, 2, 4])
    assert len(recorded.answer.items()) == 1


async def test_an_answer_that_the_upstream_has_lost_is_asked_for_again(
    upstream: BackgroundStub, monkeypatch: Any
) -> None:
    monkeypatch.setattr(background, "RECONNECT_SECS", 0.001)
    upstream.cuts = [4]
    upstream.is_lost = True
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
    assert (recorded.text, recorded.cuts) == ("one two one two three four", 1)
    assert [CONTINUE in str(body["input"]) for body in upstream.posts] == [False, True]
    assert recorded.events.count(UpstreamAbandoned()) == 1


async def test_an_upstream_that_never_comes_back_is_given_up(upstream: BackgroundStub, monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "RECONNECT_SECS", 0.001)
    upstream.cuts = [4] * (1 + background.MAX_RECONNECTS)
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
    assert upstream.picked_up == [3] * background.MAX_RECONNECTS
    assert (len(upstream.posts), recorded.cuts, recorded.finish.reason) == (2, 1, "stop")


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (CALL, {}),
        (replace(STORED, chat_extras={"stop": ["x"]}), {}),
        (STORED, {"upstream_resume": False}),
    ],
)
async def test_nothing_is_stored_upstream_unasked(
    upstream: BackgroundStub, call: ModelCall, options: dict[str, Any]
) -> None:
    async with provider_of(upstream, **options) as provider:
        recorded = await record_round(provider, call=call)
    assert recorded.text == "one two three four"
    assert asked_with(upstream.posts[0]) == {"background": None, "store": False, "stream": True}
    assert not any(isinstance(event, UpstreamPosition) for event in recorded.events)


async def test_an_upstream_without_background_mode_is_asked_as_before(upstream: BackgroundStub) -> None:
    upstream.refuses_background = True
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
        again = await record_round(provider, call=STORED)
    assert (recorded.text, recorded.deviations) == ("one two three four", ["no background mode"])
    assert (again.text, again.deviations) == ("one two three four", [])
    assert [body.get("background") for body in upstream.posts] == [True, None, None]


# -- after a crash ----------------------------------------------------------------------
async def resume_point(upstream: BackgroundStub, text: str, cursor: int = 0) -> ResumePoint:
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
    position = next(event for event in recorded.events if isinstance(event, UpstreamPosition))
    return ResumePoint(replace(position, cursor=cursor), {TextDelta: len(text)})


@pytest.mark.parametrize("cursor", [0, 1, 2, 3])
async def test_only_the_rest_of_an_answer_is_picked_up(upstream: BackgroundStub, cursor: int) -> None:
    received = {0: "one two ", 1: "one two ", 2: "two ", 3: ""}[cursor]
    point = await resume_point(upstream, received, cursor)
    if not received:
        point = replace(point, received={})
    call = replace(STORED, items=[*CALL.items, CUT_TEXT], cut_at=CutAt.TEXT, resume=point)
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=call)
    assert (recorded.text, recorded.finish.reason) == ("three four", "stop")
    assert (len(upstream.posts), upstream.picked_up) == (1, [cursor])
    assert recorded.finish.usage.output_tokens == 7


async def test_an_answer_that_is_gone_is_continued_by_a_note(upstream: BackgroundStub) -> None:
    point = await resume_point(upstream, "one two ")
    upstream.is_lost = True
    call = replace(STORED, items=[*CALL.items, CUT_TEXT], cut_at=CutAt.TEXT, resume=point)
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=call)
    assert recorded.text == "one two three four"
    assert CONTINUE in str(upstream.posts[1]["input"])
    assert UpstreamAbandoned() in recorded.events
    assert recorded.deviations == ["no answer to pick up"]


async def test_another_upstream_picks_nothing_up(upstream: BackgroundStub) -> None:
    point = await resume_point(upstream, "one two ")
    elsewhere = replace(point, position=replace(point.position, upstream="another"))
    call = replace(STORED, items=[*CALL.items, CUT_TEXT], cut_at=CutAt.TEXT, resume=elsewhere)
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=call)
        await provider.cancel(elsewhere.position)
        await provider.cancel(point.position)
    assert (upstream.picked_up, UpstreamAbandoned() in recorded.events) == ([], True)
    assert upstream.cancelled == ["resp_up1"]


def long_answer() -> list[dict[str, Any]]:
    """Reasoning in two parts, a message, a search, another message; more than two positions long."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_up1", "output": []}}]

    def item(index: int, given: dict[str, Any], *inner: dict[str, Any]) -> None:
        place = {"item_id": given["id"], "output_index": index}
        events.append({"type": "response.output_item.added", "output_index": index, "item": given})
        events.extend({**event, **place} for event in inner)
        events.append({"type": "response.output_item.done", "output_index": index, "item": given})

    def texts(kind: str, name: str, count: int) -> list[dict[str, Any]]:
        return [{"type": kind, "delta": f"{name}{number}\0 "} for number in range(count)]

    parts = [{"type": "response.reasoning_summary_part.added", "summary_index": index} for index in (0, 1)]
    thought = texts("response.reasoning_summary_text.delta", "r", 6)
    sealed = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
    item(0, sealed, parts[0], *thought[:3], parts[1], *thought[3:])
    item(1, {"id": "msg_1", "type": "message", "role": "assistant"}, *texts("response.output_text.delta", "a", 70))
    item(2, {"id": "ws_1", "type": "web_search_call", "status": "completed"})
    item(3, {"id": "msg_2", "type": "message", "role": "assistant"}, *texts("response.output_text.delta", "b", 40))
    output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    events.append({"type": "response.completed", "response": {"id": "resp_up1", "output": output}})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


class CrashingProcess:
    """Records an answer event by event, dies, and goes on from what it recorded."""

    def __init__(self) -> None:
        self.log: list[Event] = [created_event()]
        self.finished: ModelEvent | None = None

    def receive(self, events: list[dict[str, Any]], until: int, resume: ResumePoint | None) -> None:
        builder = OutputBuilder(RESPONSE_ID, self.log)
        builder.close("incomplete")
        recorder = Recorder(builder, {}, set(), "function_call", lambda context: "")
        answer = BackgroundAnswer(STORED, Upstream("openai", "m", api_mode="codex_responses"), resume)
        for event in events[answer.cursor + 1 : until]:
            for model_event in answer.understand(event):
                recorder.record(_cleaned(model_event))
        if until >= len(events):
            self.finished = list(answer.end(None))[-1]
            builder.close("completed")
        self.log += builder.take()

    @property
    def point(self) -> ResumePoint | None:
        upstream = UpstreamLog()
        for event in self.log:
            upstream.read(event)
        return upstream.resume_point()

    def deltas(self, kind: str) -> str:
        return "".join(event["delta"] for event in self.log if event["type"] == kind)

    @property
    def sealed(self) -> int:
        done = [event["item"] for event in self.log if event["type"] == "response.output_item.done"]
        return sum("encrypted_content" in item for item in done)

    def count(self, item_type: str) -> int:
        added = [event["item"]["type"] for event in self.log if event["type"] == "response.output_item.added"]
        return added.count(item_type)


def _cleaned(event: ModelEvent) -> ModelEvent:
    if isinstance(event, TextDelta | ReasoningDelta):
        return replace(event, text=event.text.replace("\0", "\ufffd"))
    return event


def test_wherever_processes_die_nothing_is_lost_or_doubled() -> None:
    events = long_answer()
    whole = CrashingProcess()
    whole.receive(events, len(events), None)
    positions = [event for event in whole.log if event["type"] == UPSTREAM_POSITION]
    assert len(positions) == 1 + len(events) // POSITION_EVENTS
    kinds = ("response.output_text.delta", "response.reasoning_summary_text.delta")
    for death in range(1, len(events)):
        process = CrashingProcess()
        process.receive(events, death, None)
        process.receive(events, min(death + 7, len(events) - 1), process.point)  # and dies again
        process.receive(events, len(events), process.point)
        assert isinstance(process.finished, ModelFinished)
        for kind in kinds:
            assert process.deltas(kind) == whole.deltas(kind), (death, kind)
        assert (process.count("web_search_call"), process.sealed) == (1, 1), death
