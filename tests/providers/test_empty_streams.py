"""A server that starts its stream before it reads the request can't report an error in it: the stream is empty."""

import pytest

from gateway_app.agent.events import ModelFailed
from tests.support.model_stub import Answer, Raw
from tests.support.providers import Providers, record_round

EMPTY = Raw(b": ping\n\n")  # what llama-cpp-python sends where the prompt is too long
TOO_LONG = b"""{"error": {"code": "context_length_exceeded",
"message": "This model's maximum context length is 512 tokens. However, you requested 936 tokens"}}"""


async def test_a_server_that_hides_errors_in_streams_is_asked_for_the_reason_without_one(providers: Providers) -> None:
    providers.stub.play(EMPTY)
    providers.stub.play(Answer(400, TOO_LONG))
    with pytest.raises(ModelFailed, match="maximum context length is 512") as raised:
        await record_round(providers.provider("chat_completions", "llama-cpp-python"))
    assert raised.value.code == "context_length_exceeded"
    assert [asked.body["stream"] for asked in providers.stub.asked] == [True, False]


async def test_an_empty_stream_whose_request_is_answered_without_one_costs_nothing(providers: Providers) -> None:
    providers.stub.play(EMPTY)
    recorded = await record_round(providers.provider("chat_completions", "llama-cpp-python"), retries=0)
    assert recorded.text == "Hello wörld 🎉"
    assert providers.requests == 2
