"""Answers that run at the upstream by themselves: a lost connection or process costs nothing of them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.events import (
    TextDelta,
    TurnFinished,
    UpstreamAbandoned,
    UpstreamPosition,
    Usage,
)
from gateway_app.agent.loop import TurnProgress, run_turn
from gateway_app.agent.model_call import CutAt, ModelCall, ResumePoint
from gateway_app.agent.tools import ToolCall, ToolResult
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.provider import OpenAIProvider
from gateway_app.providers.openai.responses import background
from responses_app.protocol.items import Item
from tests.support.background_stub import BackgroundStub, text_events
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


async def test_no_text_is_held_back_behind_a_position(upstream: BackgroundStub) -> None:
    upstream.events = text_events("<", "think>", " is text")
    async with provider_of(upstream) as provider:
        recorded = await record_round(provider, call=STORED)
    assert (recorded.text, TextDelta("<") in recorded.events) == ("<think> is text", True)


async def test_a_document_is_not_asked_for_in_the_background(upstream: BackgroundStub) -> None:
    text = {"format": {"type": "json_object"}}
    upstream.events = text_events("{", "}")
    async with provider_of(upstream) as provider:
        await record_round(provider, call=replace(STORED, parameters={"text": text}))
    assert "background" not in upstream.posts[0]


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


async def test_an_answer_is_picked_up_although_an_estimate_exceeds_its_limit(upstream: BackgroundStub) -> None:
    point = await resume_point(upstream, "one two ")
    call = replace(STORED, items=[*CALL.items, CUT_TEXT], cut_at=CutAt.TEXT, resume=point, max_output_tokens=9)
    progress = TurnProgress(open_usage=Usage(output_tokens=10), cut_at=CutAt.TEXT)
    async with provider_of(upstream) as provider:
        events = [event async for event in run_turn([provider], call, no_tool, progress, retries=0)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "three four"
    assert events[-1] == TurnFinished(Usage(11, 7))


async def no_tool(call: ToolCall) -> ToolResult | None:
    raise AssertionError(call)
