"""A model's server that sends without end costs neither the memory of this server nor its time."""

import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from gateway_app.agent.events import ModelEvent, TextDelta
from gateway_app.agent.think_tags import ThinkTags
from gateway_app.providers.openai.sse import MAX_ANSWER_BYTES
from gateway_app.providers.openai.transport import MAX_ERROR_BYTES, with_limited_error
from tests.support.model_stub import Answer, Finish, ModelStub, Text
from tests.support.providers import CALL, Providers, failed_round, record_round

GZIPPED = {"Content-Encoding": "gzip"}
PIECE = b" " * 100_000
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}


class Endless(httpx2.AsyncByteStream):
    """Counts what is read of it."""

    def __init__(self) -> None:
        self.read_bytes = 0
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.read_bytes += len(PIECE)
            yield PIECE

    async def aclose(self) -> None:
        self.is_closed = True


async def test_an_endless_error_is_read_up_to_its_limit_and_closed() -> None:
    stream = Endless()
    limited = await with_limited_error(httpx2.Response(500, stream=stream))
    assert len(await limited.aread()) == MAX_ERROR_BYTES
    assert stream.read_bytes <= MAX_ERROR_BYTES + len(PIECE)
    assert stream.is_closed


async def test_an_error_that_is_small_only_on_the_wire_is_read_up_to_its_limit(providers: Providers) -> None:
    message = {"error": {"message": "No memory left." + " " * 50_000_000}}
    providers.stub.play(Answer(500, gzip.compress(json.dumps(message).encode()), GZIPPED))
    failure = await failed_round(providers, "chat_completions", retries=0)
    assert "answered 500" in failure.message
    assert "No memory left." in failure.message


async def test_a_short_error_in_gzip_is_read_as_before(providers: Providers) -> None:
    body = gzip.compress(b'{"error": {"message": "No such model.", "code": "model_not_found"}}')
    providers.stub.play(Answer(400, body, GZIPPED))
    failure = await failed_round(providers, "chat_completions", retries=0)
    assert failure.message == "The model's server answered 400: No such model."


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses"])
async def test_a_whole_answer_beyond_the_limit_is_a_failure(providers: Providers, mode: str) -> None:
    body = b" " * (MAX_ANSWER_BYTES + 1) + ModelStub.whole(mode, (Text("x"), Finish()))
    providers.stub.play(Answer(200, gzip.compress(body, 1), GZIPPED))
    failure = await failed_round(providers, mode, retries=0)
    assert "longer than 32 MB" in failure.message


def test_whitespace_is_not_held_for_a_tag_without_end() -> None:
    tags = ThinkTags()
    events: list[ModelEvent] = []
    fed = 0
    while not tags.is_over:
        fed += 1
        events += tags.feed(TextDelta(" \n" * 50))
    assert events == [TextDelta(" \n" * 50 * fed)]
    assert fed < 10


async def peak_bytes(providers: Providers, text: str) -> int:
    providers.stub.play(*[Text(text) for _ in range(500)], Text("x"), Finish())
    provider = providers.provider("chat_completions", "lmstudio")
    tracemalloc.start()
    recorded = await record_round(provider, call=replace(CALL, client_tools=(LOOK,)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(recorded.text) == 500 * len(text) + 1
    return peak


async def test_a_megabyte_of_leading_whitespace_takes_no_more_memory_than_any_text(providers: Providers) -> None:
    await peak_bytes(providers, "warm ")
    assert await peak_bytes(providers, " " * 2000) < 1.5 * await peak_bytes(providers, "x" * 2000)
