"""What holds for every connection to a model's server, whichever library makes it."""

import asyncio
import base64
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import aiohttp
import httpx2
import pytest

from gateway_app.agent.events import ModelFailed
from tests.support.addresses import LOOPBACK
from tests.support.model_stub import Answer, Finish, Gate, ModelStub, Text
from tests.support.providers import CALL, Providers, failed_round, record_round

MODE = "chat_completions"
REQUESTS = (httpx2.Request, aiohttp.Payload)
LONG_TEXT = "x" * 8_000_000  # more than the buffers of both sides hold


@pytest.fixture
async def deaf_url() -> AsyncIterator[str]:
    """A server that accepts connections and reads nothing."""

    class Deaf(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            accepted.append(transport)

    accepted: list[asyncio.Transport] = []
    server = await asyncio.get_running_loop().create_server(Deaf, LOOPBACK, 0)
    yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/v1"
    for transport in accepted:
        transport.abort()
    server.close()


async def test_a_server_that_takes_no_data_is_given_up_after_the_write_limit(
    providers: Providers, deaf_url: str
) -> None:
    provider = providers.provider(MODE, base_url=deaf_url, write_secs=0.2, stale_secs=30)
    call = CALL.followed_by([{"type": "message", "role": "user", "content": LONG_TEXT}])
    with pytest.raises(ModelFailed, match=r"took no data for 0\.2 s"):
        await record_round(provider, call=call, retries=0)


async def test_an_error_of_a_connection_names_no_address(providers: Providers) -> None:
    with pytest.raises(ModelFailed) as caught:
        await record_round(providers.provider(MODE, base_url="http://127.0.0.1:9/v1"), retries=0)
    assert "cannot be reached: Connection refused" in caught.value.message
    assert "127.0.0.1" not in caught.value.message


async def test_a_redirect_is_not_followed(providers: Providers) -> None:
    providers.stub.play(Answer(307, b"", {"Location": f"{providers.stub.url}/elsewhere"}))
    failure = await failed_round(providers, MODE, retries=0)
    assert "answered 307" in failure.message
    assert providers.requests == 1


async def test_credentials_of_an_address_and_of_a_proxy_are_sent_apart(
    providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", providers.stub.url.removesuffix("/v1").replace("http://", "http://me:word@"))
    monkeypatch.setenv("no_proxy", "")
    await record_round(providers.provider(MODE, base_url="http://user:pass@models.example.com/v1"))
    asked = providers.stub.asked[0]
    assert asked.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:word").decode()
    assert asked.headers["host"] == "models.example.com"
    assert "pass" not in asked.path


async def test_a_request_is_not_kept_while_its_answer_is_read(providers: Providers) -> None:
    """Neither the first, which the SDK builds, nor the next, which repeats its head."""
    provider = providers.provider(MODE)
    for _ in range(2):
        gate = threading.Event()
        providers.stub.play(Text("a"), Gate(gate), Text("b"), Finish())
        async with aclosing(provider.stream(CALL)) as events:
            await anext(events)
            gc.collect()
            kept = [found for found in gc.get_objects() if isinstance(found, REQUESTS)]
            gate.set()
            rest = [event async for event in events]
        assert rest
        assert kept == []


async def test_a_request_that_repeats_a_head_is_sent_as_the_first(providers: Providers) -> None:
    options = {"query": {"version": "1"}, "extra_headers": {"X-Team": "blue"}}
    provider = providers.provider(MODE, options=options)
    for _ in range(2):
        await record_round(provider)
    first, second = providers.stub.asked
    assert (first.path, first.body, first.headers) == (second.path, second.body, second.headers)
    assert first.connection == second.connection


@pytest.mark.parametrize(
    "answer",
    [
        Answer(307, b"", {"Location": "http://models.example.com/v1"}),
        Answer(429, b'{"error": {"message": "slower"}}', {"Retry-After": "3"}),
        Answer(400, b"no JSON"),
    ],
)
async def test_a_request_that_repeats_a_head_fails_as_the_first(providers: Providers, answer: Answer) -> None:
    failures: list[dict[str, Any]] = []
    provider = providers.provider(MODE)
    for has_answered in (False, True):
        if has_answered:
            await record_round(provider)
        providers.stub.play(answer)
        with pytest.raises(ModelFailed) as failed:
            await record_round(provider, retries=0)
        failures.append(vars(failed.value))
    assert failures[0] == failures[1]


async def test_a_server_that_goes_away_after_an_answer_is_reported(providers: Providers) -> None:
    with ModelStub() as stub:
        provider = providers.provider(MODE, base_url=stub.url)
        await record_round(provider)
    with pytest.raises(ModelFailed, match="cannot be reached: the server closed the connection"):
        await record_round(provider, retries=0)


async def test_the_time_between_two_reads_is_no_silence(providers: Providers) -> None:
    gate = threading.Event()
    providers.stub.play(Text("a"), Gate(gate), Text("b"), Finish())
    provider = providers.provider(MODE, read_secs=0.2, stale_secs=0.2)
    received = []
    async for event in provider.stream(CALL):
        received.append(event)
        if len(received) == 1:
            await asyncio.sleep(0.5)  # as a turn does that waits for the disk
            gate.set()
    assert [event.text for event in received if hasattr(event, "text")] == ["a", "b"]
