"""A round with the model: how often it is asked, what it gets, which model is next, and how it ends."""

import asyncio
import threading
import time
from contextlib import aclosing
from dataclasses import replace

import pytest

from gateway_app.agent.answer_buffer import CONTINUE, AnswerBuffer, continued, with_note
from gateway_app.agent.context import as_note
from gateway_app.agent.events import (
    AnswerStarted,
    ModelFailed,
    TextDelta,
)
from gateway_app.agent.events import Cut as Broken
from gateway_app.agent.model_call import CutAt
from gateway_app.agent.retries import MAX_PAUSE_SECS
from gateway_app.agent.rounds import ask
from gateway_app.providers.openai.client import Upstream
from responses_app.protocol.items import content_text
from tests.support.model_stub import (
    Answer,
    Begun,
    Call,
    Calls,
    Cut,
    Finish,
    Gate,
    ModelStub,
    Raw,
    Reset,
    Step,
    StreamStyle,
    Text,
    Thought,
    sse,
)
from tests.support.providers import (
    CALL,
    KEY,
    Providers,
    failed_round,
    record_round,
)

STALE_SECS = 0.1
BUSY = Answer(503, b'{"error": {"message": "Busy."}}')
WRITE = Begun(Call("c1", "write_file", ('{"text": "lo',)))


# -- retries ----------------------------------------------------------------------------
@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_a_request_without_a_word_is_made_again_so_often_and_no_oftener(
    providers: Providers, mode: str, retries: int
) -> None:
    for _ in range(5):
        providers.stub.play(BUSY)
    failure = await failed_round(providers, mode, retries)
    assert failure.message == "The model's server answered 503: Busy."
    assert providers.requests == retries + 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(400, b'{"error": {"message": "Bad."}}'),
        Raw(sse({"error": {"message": f"The key {KEY} may not.", "code": 400}})),
        Raw(sse({"error": {"message": "A policy says no."}})),
    ],
)
async def test_a_refusal_for_good_is_not_asked_again(providers: Providers, mode: str, answer: Step) -> None:
    providers.stub.play(answer)
    with ModelStub() as other, pytest.raises(ModelFailed) as failed:
        await record_round(providers.provider(mode), providers.provider(mode, base_url=other.url))
    assert KEY not in failed.value.message
    assert (providers.requests, len(other.asked)) == (1, 0)


async def test_an_error_for_good_after_some_text_fails_and_is_not_continued(providers: Providers, mode: str) -> None:
    providers.stub.play(Text("so f"), Raw(sse({"error": {"message": "A policy says no."}})))
    assert (await failed_round(providers, mode)).message == "The model failed: A policy says no."
    assert providers.requests == 1


@pytest.mark.parametrize("header", [{"Retry-After": "0.2"}, {"Retry-After-Ms": "200"}])
async def test_retry_after_is_honoured(providers: Providers, mode: str, header: dict[str, str]) -> None:
    providers.stub.play(replace(BUSY, headers=header))
    start = time.monotonic()
    await record_round(providers.provider(mode))
    assert 0.2 <= time.monotonic() - start < 5


async def test_retries_wait_longer_each_time(providers: Providers, mode: str) -> None:
    for _ in range(3):
        providers.stub.play(BUSY)
    start = time.monotonic()
    async with aclosing(ask([providers.provider(mode)], CALL, 3, AnswerBuffer(), backoff_secs=0.05)) as events:
        assert [event async for event in events]
    assert (1 + 2 + 4) * 0.025 <= time.monotonic() - start < 5  # half of it is left to chance


async def test_a_wait_can_be_cancelled(providers: Providers, mode: str) -> None:
    providers.stub.play(replace(BUSY, headers={"Retry-After": "60"}))
    asking = asyncio.create_task(record_round(providers.provider(mode)))
    while not providers.stub.asked:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, 2)
    assert MAX_PAUSE_SECS == 60


async def test_a_date_in_retry_after_is_understood(providers: Providers, mode: str) -> None:
    providers.stub.play(replace(BUSY, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    assert (await record_round(providers.provider(mode))).text == "Hello wörld 🎉"


async def test_a_long_context_may_take_longer(providers: Providers, mode: str) -> None:
    opened = threading.Event()
    providers.stub.play(StreamStyle(has_opening=False), Gate(opened), Text("At last."), Finish())
    later = threading.Timer(4 * STALE_SECS, opened.set)
    later.start()
    long = replace(CALL, instructions="word " * 50_001)
    recorded = await record_round(providers.provider(mode, stale_secs=STALE_SECS), call=long)
    assert (recorded.text, providers.requests) == ("At last.", 1)


def test_the_stale_limit_grows_with_the_context() -> None:
    upstream, patient = Upstream("custom", "m", stale_secs=180), Upstream("custom", "m", stale_secs=999)
    limits = [upstream.stale_limit_secs(tokens) for tokens in (50_000, 50_001, 100_000, 100_001)]
    assert limits == [180, 240, 240, 300]
    assert patient.stale_limit_secs(200_000) == 999


# -- continuations ----------------------------------------------------------------------
async def test_a_text_is_continued_four_times_and_then_incomplete(providers: Providers, mode: str) -> None:
    for number in range(9):
        providers.stub.play(Text(f"{number} "), Reset())
    recorded = await record_round(providers.provider(mode))
    assert (recorded.text, recorded.cuts, providers.requests) == ("0 1 2 3 4 ", 5, 5)
    assert recorded.finish.reason == "upstream_cut"
    assert [providers.shown(number).count(CONTINUE) for number in range(5)] == [0, 1, 1, 1, 1]
    texts = [content_text(item["content"]) for item in recorded.answer.items()]
    assert texts == ["0 1 2 3 4 "]  # one message for the model


async def test_retries_count_anew_for_each_continuation(providers: Providers, mode: str) -> None:
    for word in ("a", "b"):
        providers.stub.play(BUSY)
        providers.stub.play(BUSY)
        providers.stub.play(Text(word), Cut())
    providers.stub.play(Text("c"), Finish())
    recorded = await record_round(providers.provider(mode))
    assert (recorded.text, recorded.finish.reason, providers.requests) == ("abc", "stop", 7)


async def test_reasoning_alone_is_not_shown_and_the_question_is_asked_again(providers: Providers, mode: str) -> None:
    providers.stub.play(Thought("Hm. "), Cut())
    recorded = await record_round(providers.provider(mode))
    assert (recorded.thought, recorded.text, recorded.cuts) == ("Hm. ", "Hello wörld 🎉", 1)
    assert providers.shown(1) == providers.shown(0)


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
async def test_a_document_is_not_continued(providers: Providers, mode: str, kind: str) -> None:
    formatted = replace(CALL, parameters={"text": {"format": {"type": kind, "name": "n", "schema": {}}}})
    provider = providers.provider(mode)
    providers.stub.play(Text("{}"), Finish())
    await record_round(provider, call=formatted)  # the first one is not streamed
    providers.stub.play(Text('{"a":'), Cut())
    recorded = await record_round(provider, call=formatted)
    assert (recorded.text, recorded.finish.reason, providers.requests) == ('{"a":', "upstream_cut", 2)
    providers.stub.play(BUSY)
    providers.stub.play(Text("{}"), Finish())
    assert (await record_round(provider, call=formatted)).finish.reason == "stop"


async def test_a_plain_format_is_continued(providers: Providers, mode: str) -> None:
    providers.stub.play(Text("so "), Cut())
    plain = replace(CALL, parameters={"text": {"format": {"type": "text"}}})
    assert (await record_round(providers.provider(mode), call=plain)).text == "so Hello wörld 🎉"


def test_a_continued_call_has_the_output_and_asks_to_go_on() -> None:
    buffer = AnswerBuffer()
    for event in (TextDelta("so "), TextDelta("f"), Broken()):
        buffer.add(event)
    shown = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so f"}]}
    asked = continued(replace(CALL, tool_choice="required"), buffer)
    assert (asked.items, asked.cut_at) == ([*CALL.items, shown], CutAt.TEXT)
    assert with_note(asked).items == [*asked.items, as_note(CONTINUE)]
    assert asked.tool_choice == "required"
    assert continued(CALL, AnswerBuffer()).items == CALL.items


# -- fallback models --------------------------------------------------------------------
async def test_the_next_model_takes_over_when_the_retries_are_used_up(providers: Providers, mode: str) -> None:
    for _ in range(2):
        providers.stub.play(BUSY)
    with ModelStub() as other:
        recorded = await record_round(
            providers.provider(mode), providers.provider(mode, base_url=other.url, model="m-2"), retries=1
        )
        assert (providers.requests, [asked.body["model"] for asked in other.asked]) == (2, ["m-2"])
    assert recorded.text == "Hello wörld 🎉"


async def test_the_next_model_goes_on_when_the_continuations_are_used_up(providers: Providers, mode: str) -> None:
    for number in range(5):
        providers.stub.play(Text(f"{number} "), Cut())
    with ModelStub() as other:
        recorded = await record_round(providers.provider(mode), providers.provider(mode, base_url=other.url))
        assert "4 " in str(other.asked[0].body)
        assert CONTINUE in str(other.asked[0].body)
    assert (recorded.text, recorded.finish.reason) == ("0 1 2 3 4 Hello wörld 🎉", "stop")


async def test_when_no_model_is_left_the_last_failure_is_reported(providers: Providers, mode: str) -> None:
    with ModelStub() as other:
        for stub, message in ((providers.stub, b"First."), (other, b"Last.")):
            stub.play(Answer(500, b'{"error": {"message": "%s"}}' % message))
        with pytest.raises(ModelFailed, match=r"Last\."):
            await record_round(providers.provider(mode), providers.provider(mode, base_url=other.url), retries=0)


async def test_a_context_that_is_too_long_has_its_own_code(providers: Providers, mode: str) -> None:
    error = b'{"error": {"message": "%s", "code": "%s"}}'
    for message, code in (
        (b"No.", b"context_length_exceeded"),
        (b"This model's maximum context length is 8192 tokens.", b""),
        (b"Your input exceeds the context window of this model.", b""),
        (b"prompt is too long: 210000 tokens > 200000 maximum", b""),
    ):
        providers.stub.play(Answer(400, error % (message, code)))
        providers.stub.play(Raw(b"data: " + error % (message, code) + b"\n\n"))
        for _ in range(2):
            assert (await failed_round(providers, mode)).code == "context_length_exceeded"
    assert providers.requests == 8
    providers.stub.play(Answer(400, b'{"error": {"message": "Invalid context."}}'))
    assert (await failed_round(providers, mode)).code == "invalid_prompt"


async def test_closing_a_round_hangs_up(providers: Providers, mode: str) -> None:
    providers.stub.play(Text("a"), Cut())
    async with aclosing(ask([providers.provider(mode)], CALL, 2, AnswerBuffer())) as events:
        assert await anext(events) == AnswerStarted(CALL.input_tokens())
        assert await anext(events) == TextDelta("a")
    assert providers.requests == 1


async def test_a_text_that_broke_off_and_its_rest_are_one_message_in_the_next_request(
    providers: Providers, mode: str
) -> None:
    providers.stub.play(Text("one, "), Cut())
    providers.stub.play(Text("two"), Calls((Call("call_1", "look", ("{}",)),)), Finish())
    call = replace(CALL, client_tools=({"type": "function", "name": "look", "parameters": {}},))
    recorded = await record_round(providers.provider(mode), call=call)
    texts = [content_text(item["content"]) for item in recorded.answer.items() if item["type"] == "message"]
    assert texts == ["one, two"]
