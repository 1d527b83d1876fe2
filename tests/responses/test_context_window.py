"""What the model gets: the profile's prompt, and as much of the past as fits."""

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from tests.support.model_stub import (
    Answer,
    Finish,
    ModelStub,
    Text,
)
from tests.support.server import Server
from tests.support.stored_rows import count_rows

pytestmark = pytest.mark.any_database

LONG = "word " * 400  # about 500 tokens


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


def add_profile(server: Server, **fields: Any) -> None:
    server.manage("shell", "-c", f"from responses_app.models import Profile; Profile.objects.create(**{fields!r})")


def test_a_request_that_cannot_fit_is_refused_before_it_is_stored(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="1000")
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input=f"first {LONG}")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="hermes-agent", input=f"second {LONG}", previous_response_id=first.id)
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")
    assert count_rows(server, "response") == 1


def test_truncation_drops_the_oldest_turns_and_keeps_the_request(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="1500")
    client = server.openai()
    previous: str | None = None
    for name in ("alpha", "beta", "gamma"):
        body = client.responses.create(
            model="hermes-agent", input=f"{name} {LONG}", previous_response_id=previous, truncation="auto"
        )
        assert body.status == "completed"
        previous = body.id
    seen = "".join(server.model_calls("gamma")[0]["texts"])
    assert "gamma" in seen
    assert "alpha word" not in seen


def test_an_upstream_that_refuses_the_length_is_a_failed_response(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    reply = b'{"error": {"message": "maximum context length is 10 tokens", "code": "context_length_exceeded"}}'
    stub.play(Answer(400, reply))
    body = server.openai().responses.create(model="hermes-agent", input="x")
    assert body.status == "failed"
    assert body.error is not None
    # SDKs have no code for it there, and read it nevertheless.
    assert str(body.error.code) == "context_length_exceeded"
    assert body.error.message.startswith("The model's server answered 400: maximum context length")
    stub.play(Answer(400, reply))
    failed = list(server.openai().responses.create(model="hermes-agent", input="x", stream=True))[-1]
    assert failed.type == "response.failed"
    assert failed.response.error is not None
    assert str(failed.response.error.code) == "context_length_exceeded"
    stub.play(Answer(400, reply))
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().chat.completions.create(model="hermes-agent", messages=[{"role": "user", "content": "x"}])
    assert refused.value.code == "context_length_exceeded"


def test_the_profiles_prompt_stays_below_whatever_clients_say(server: Server) -> None:
    add_profile(server, name="pirate", instructions="Speak like a pirate.")
    client = server.openai()
    client.responses.create(model="pirate", input="layered prompt", instructions="Be short.")
    client.responses.create(model="pirate", input="cleared prompt", instructions="")
    assert server.model_calls("layered prompt")[0]["instructions"] == "Speak like a pirate.\n\nBe short."
    assert server.model_calls("cleared prompt")[0]["instructions"] == "Speak like a pirate."


def test_a_profile_has_the_tools_it_names(server: Server) -> None:
    add_profile(server, name="narrow", toolset=["calculate"])
    body = server.openai().responses.create(
        model="narrow", input='{"script": [{"call": "effect", "arguments": {"text": "narrow"}}]}'
    )
    assert "no tool named" in str(body.output[1])


def test_a_profiles_fallback_goes_on_where_its_model_fails(make_server: Callable[..., Server], stub: ModelStub) -> None:
    server = make_server(
        HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_STREAM_RETRIES="0"
    )
    add_profile(server, name="steady", upstream_model="first", fallback_models=["second"])
    stub.play(Answer(503, b"{}"))
    stub.play(Text("from the second"), Finish())
    body = server.openai().responses.create(model="steady", input="x")
    assert body.output_text == "from the second"
    assert [asked.body["model"] for asked in stub.asked] == ["first", "second"]
    add_profile(server, name="broken", fallback_models=[{"colour": "red"}])
    broken = server.openai().responses.create(model="broken", input="x")
    assert broken.error is not None
    assert "Profile broken: fallback_models[0].colour" in broken.error.message
