"""A model that is not ready yet is waited for; a server that asks for an hour is not."""

import asyncio
import time
from dataclasses import replace

import pytest

from gateway_app.agent.events import ModelFailed
from tests.support.model_stub import Answer, Cut, Finish, Leave, ModelStub, Reset, Text
from tests.support.ports import free_port
from tests.support.providers import Providers, failed_round, record_round

LOADING = Answer(503, b'{"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}')
BUSY = Answer(503, b"<html>Service Temporarily Unavailable</html>")
HELLO = "Hello wörld 🎉"
LONG_SECS = 60  # no test waits for so long
AN_HOUR = {"Retry-After": "3600"}


@pytest.mark.parametrize("answer", [LOADING, BUSY], ids=["loading", "busy"])
async def test_a_server_nearby_is_asked_until_its_model_is_ready(
    providers: Providers, mode: str, answer: Answer
) -> None:
    for _ in range(6):
        providers.stub.play(answer)
    recorded = await record_round(providers.provider(mode, loading_secs=LONG_SECS), retries=1)
    assert (recorded.text, recorded.cuts, providers.requests) == (HELLO, 0, 7)


async def test_it_is_not_asked_for_longer_than_that(providers: Providers, mode: str) -> None:
    for _ in range(99):
        providers.stub.play(LOADING)
    start = time.monotonic()
    with pytest.raises(ModelFailed, match="Loading model"):
        await record_round(providers.provider(mode, loading_secs=0.2), retries=1)
    assert time.monotonic() - start >= 0.2
    assert 1 < providers.requests < 99  # a busy machine may take most of the time for the first two


async def test_without_retries_it_is_asked_once(providers: Providers, mode: str) -> None:
    providers.stub.play(LOADING)
    with pytest.raises(ModelFailed):
        await record_round(providers.provider(mode, loading_secs=LONG_SECS), retries=0)
    assert providers.requests == 1


async def test_other_errors_are_not_waited_out(providers: Providers, mode: str) -> None:
    for _ in range(3):
        providers.stub.play(Answer(500, b'{"error": {"message": "Broken."}}'))
    with pytest.raises(ModelFailed, match="Broken"):
        await record_round(providers.provider(mode, loading_secs=LONG_SECS), retries=2)
    assert providers.requests == 3


@pytest.mark.parametrize(("answer", "requests"), [(LOADING, 5), (BUSY, 2)], ids=["loading", "busy"])
async def test_a_public_server_is_waited_for_only_while_it_loads(
    providers: Providers, mode: str, monkeypatch: pytest.MonkeyPatch, answer: Answer, requests: int
) -> None:
    """The stub is the proxy to an address that no request reaches otherwise."""
    monkeypatch.setenv("http_proxy", providers.stub.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    public = providers.provider(mode, base_url="http://models.example.com/v1", loading_secs=LONG_SECS)
    for _ in range(4):
        providers.stub.play(answer)
    if requests == 5:
        assert (await record_round(public, retries=1)).text == HELLO
    else:
        with pytest.raises(ModelFailed):
            await record_round(public, retries=1)
    assert providers.requests == requests


async def test_a_server_that_is_restarted_in_the_middle_of_an_answer_is_waited_for(
    providers: Providers, mode: str
) -> None:
    """Its port refuses connections until another server listens there."""
    port = free_port()
    with ModelStub(port) as first:
        first.play(Text("so "), Leave())
        provider = providers.provider(mode, base_url=first.url, loading_secs=LONG_SECS)
        asking = asyncio.create_task(record_round(provider, retries=1))
        while not first.asked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    with ModelStub(port) as restarted:
        restarted.play(LOADING)
        restarted.play(Text("it goes on"), Finish())
        recorded = await asyncio.wait_for(asking, LONG_SECS)
        assert len(restarted.asked) == 2
    assert (recorded.text, recorded.cuts) == ("so it goes on", 1)


async def test_a_server_that_never_answered_is_not_waited_for(providers: Providers, mode: str) -> None:
    with ModelStub() as gone:
        address = gone.url
    provider = providers.provider(mode, base_url=address, loading_secs=LONG_SECS)
    with pytest.raises(ModelFailed, match="cannot be reached"):
        await asyncio.wait_for(record_round(provider, retries=1), LONG_SECS / 2)


# -- Retry-After ------------------------------------------------------------------------
@pytest.mark.parametrize("status", [429, 503])
async def test_an_hour_is_not_waited_for(providers: Providers, mode: str, status: int) -> None:
    providers.stub.play(Answer(status, b'{"error": {"message": "Later."}}', AN_HOUR))
    provider = providers.provider(mode, loading_secs=LONG_SECS)
    with pytest.raises(ModelFailed) as failed:
        await asyncio.wait_for(record_round(provider), LONG_SECS / 2)
    assert (failed.value.retry_after, providers.requests) == (3600, 1)


async def test_the_next_model_is_asked_at_once_instead(providers: Providers, mode: str) -> None:
    providers.stub.play(replace(LOADING, headers=AN_HOUR))
    with ModelStub() as other:
        models = providers.provider(mode), providers.provider(mode, base_url=other.url)
        recorded = await asyncio.wait_for(record_round(*models), LONG_SECS / 2)
    assert (recorded.text, providers.requests) == (HELLO, 1)


@pytest.mark.parametrize("end", [Cut(), Reset()], ids=["cut", "reset"])
async def test_a_text_that_would_go_on_in_an_hour_is_incomplete(
    providers: Providers, mode: str, end: Cut | Reset
) -> None:
    providers.stub.play(Text("so "), end)
    providers.stub.play(Answer(429, b'{"error": {"message": "Later."}}', AN_HOUR))
    recorded = await asyncio.wait_for(record_round(providers.provider(mode)), LONG_SECS / 2)
    assert (recorded.text, recorded.finish.reason) == ("so ", "upstream_cut")


async def test_the_time_of_the_last_refusal_is_reported(providers: Providers, mode: str) -> None:
    providers.stub.play(Answer(429, b'{"error": {"message": "Later."}}', {"Retry-After": "7"}))
    assert (await failed_round(providers, mode, retries=0)).retry_after == 7
