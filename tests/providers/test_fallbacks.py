"""Which failures the next model is asked for, and which are final."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.events import ModelFailed
from gateway_app.providers.openai.provider import OpenAIProvider
from tests.support.model_stub import Answer, Begun, Call, Cut, Finish, ModelStub, Raw, Step, Text, sse
from tests.support.providers import CALL, Providers, record_round

HELLO = "Hello wörld 🎉"
QUOTA = Raw(sse({"error": {"message": "You exceeded your current quota."}}))


def refused(status: int, message: str, code: str = "") -> Answer:
    return Answer(status, b'{"error": {"message": "%s", "code": "%s"}}' % (message.encode(), code.encode()))


OTHERS_MAY_ANSWER: list[tuple[Step, str]] = [
    (refused(401, "Incorrect API key."), "authentication"),
    (refused(403, "Your country is not supported."), "authentication"),
    (refused(402, "Insufficient Balance"), "quota"),
    (refused(429, "Pay.", "insufficient_quota"), "quota"),
    (refused(429, "You exceeded your current quota."), "quota"),
    (refused(404, "The model `m-1` does not exist", "model_not_found"), "unknown model"),
    (refused(404, "model 'm-1' not found"), "unknown model"),
    (refused(404, ""), "unknown model"),
    (refused(400, "model 'm-1' not found"), "unknown model"),
    (refused(400, "m-1 is not a valid model ID"), "unknown model"),
    (refused(400, "Invalid model: m-1", "1500"), "unknown model"),
    (refused(400, "Model Not Exist"), "unknown model"),
    (refused(400, "Too long.", "context_length_exceeded"), "context overflow"),
    (refused(400, "the request exceeds the available context size"), "context overflow"),
    (refused(413, ""), "context overflow"),
    (QUOTA, "quota"),
]
FINAL: list[Step] = [
    refused(400, "Bad."),
    refused(400, "Invalid 'tools[0].name'", "invalid_value"),
    refused(422, "Extra inputs are not permitted"),
    Raw(sse({"error": {"message": "Bad.", "code": 400}})),
    Raw(sse({"error": {"message": "A policy says no."}})),
]


@pytest.fixture
def other() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture
def both(providers: Providers, mode: str, other: ModelStub) -> list[OpenAIProvider]:
    return [providers.provider(mode), providers.provider(mode, base_url=other.url, model="m-2")]


@pytest.mark.parametrize(("answer", "cause"), OTHERS_MAY_ANSWER)
async def test_the_next_model_is_asked_at_once_where_it_may_answer(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider], answer: Step, cause: str
) -> None:
    providers.stub.play(answer)
    recorded = await record_round(*both)
    assert (recorded.text, providers.requests, len(other.asked)) == (HELLO, 1, 1)
    assert recorded.deviations == [f"fallback model 1: {cause}"]


@pytest.mark.parametrize(("answer", "cause"), OTHERS_MAY_ANSWER)
async def test_without_a_next_model_such_a_failure_is_final(
    providers: Providers, mode: str, answer: Step, cause: str
) -> None:
    providers.stub.play(answer)
    with pytest.raises(ModelFailed) as failed:
        await record_round(providers.provider(mode))
    assert (failed.value.model_fault, providers.requests) == (cause, 1)


@pytest.mark.parametrize("answer", FINAL)
async def test_a_bad_request_is_final(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider], answer: Step
) -> None:
    providers.stub.play(answer)
    with pytest.raises(ModelFailed):
        await record_round(*both)
    assert (providers.requests, len(other.asked)) == (1, 0)


async def test_a_model_that_does_not_answer_is_named_too(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    providers.stub.play(refused(500, "Broken."))
    assert (await record_round(*both, retries=0)).deviations == ["fallback model 1: no answer"]


async def test_the_next_model_goes_on_with_a_text_that_an_empty_quota_ended(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    providers.stub.play(Text("so "), QUOTA)
    recorded = await record_round(*both)
    assert (recorded.text, recorded.cuts, providers.requests) == (f"so {HELLO}", 1, 1)
    assert CONTINUE in str(other.asked[0].body)


async def test_the_next_model_makes_a_call_that_an_empty_quota_ended(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    providers.stub.play(Begun(Call("c1", "write_file", ('{"text": "lo',))), QUOTA)
    recorded = await record_round(*both)
    assert (recorded.text, recorded.calls, providers.requests) == (HELLO, [], 1)
    assert "`write_file` was cut off" in str(other.asked[0].body)


async def test_no_model_goes_on_with_a_document(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    formatted = replace(CALL, parameters={"text": {"format": {"type": "json_object"}}})
    providers.stub.play(Text("{}"), Finish())
    await record_round(*both, call=formatted)  # the first one is not streamed
    providers.stub.play(Text('{"a":'), QUOTA)
    with pytest.raises(ModelFailed, match="quota"):
        await record_round(*both, call=formatted)
    assert len(other.asked) == 0


async def test_the_next_model_writes_a_document_of_which_nothing_was_sent(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    formatted = replace(CALL, parameters={"text": {"format": {"type": "json_object"}}})
    providers.stub.play(Text('{"a":'), QUOTA)
    other.play(Text("{}"), Finish())
    recorded = await record_round(*both, call=formatted)
    assert (recorded.text, recorded.cuts) == ("{}", 0)


async def test_a_request_that_no_model_accepts_fails_for_the_reason_of_the_last(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    providers.stub.play(refused(401, "Who?"))
    other.play(refused(400, "Too long.", "context_length_exceeded"))
    with pytest.raises(ModelFailed) as failed:
        await record_round(*both)
    assert failed.value.code == "context_length_exceeded"


async def test_a_text_that_no_model_may_continue_fails(
    providers: Providers, other: ModelStub, both: list[OpenAIProvider]
) -> None:
    for _ in range(5):
        providers.stub.play(Text("so "), Cut())
    other.play(refused(401, "Who?"))
    with pytest.raises(ModelFailed, match="Who"):
        await record_round(*both)
