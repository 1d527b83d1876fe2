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
from tests.support.stored_rows import count_rows, stored_rows

pytestmark = pytest.mark.any_database

LONG = "word " * 400  # about 400 tokens
REFUSED = b'{"error": {"message": "maximum context length is 10 tokens", "code": "context_length_exceeded"}}'
TOO_LONG = Answer(400, REFUSED)


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


def add_profile(server: Server, **fields: Any) -> None:
    server.manage("shell", "-c", f"from responses_app.models import Profile; Profile.objects.create(**{fields!r})")


def test_a_request_that_cannot_fit_is_refused_before_it_is_stored(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="1000", HERMES_COMPACT_SHARE="0")
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input=f"first {LONG}", tools=[])
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(
            model="hermes-agent", input=f"second {LONG}" * 2, previous_response_id=first.id, tools=[]
        )
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")
    assert count_rows(server, "response") == 1


@pytest.mark.parametrize("extra", [{}, {"truncation": "auto"}])
def test_a_question_that_no_summary_shortens_is_refused(make_server: Callable[..., Server], extra: Any) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="1000")
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().responses.create(model="hermes-agent", input=LONG * 3, tools=[], **extra)
    assert refused.value.code == "context_length_exceeded"
    assert "Shorten the last message" in refused.value.message  # truncation is no remedy


def test_the_servers_own_tools_and_prompt_take_room(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="500", HERMES_CORE_PROMPT="on")
    create = server.openai().responses.create
    with pytest.raises(openai.BadRequestError) as refused:
        create(model="hermes-agent", input="short")
    assert "with the server's own prompt and tools" in refused.value.message
    assert create(model="hermes-agent", input="short", tools=[]).status == "completed"


@pytest.mark.parametrize("is_in_body", [False, True], ids=["stored history", "history in the body"])
def test_truncation_drops_the_oldest_turns_and_reports_it(make_server: Callable[..., Server], is_in_body: bool) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="1500")
    sent: list[dict[str, Any]] = []
    headers: list[str | None] = []
    previous: str | None = None
    with server.http() as client:
        for name in ("alpha", "beta", "gamma"):
            sent.append({"role": "user", "content": f"{name} {LONG}"})
            chained = {"store": False} if is_in_body else {"previous_response_id": previous}
            new = sent if is_in_body else sent[-1:]
            got = client.post("/v1/responses", json={"input": new, "truncation": "auto", "tools": [], **chained})
            body = got.json()
            assert body["status"] == "completed"
            previous = body["id"]
            sent += [{"role": "assistant", "content": "noted"}] if is_in_body else []
            headers.append(got.headers.get("x-hermes-ignored"))
    assert (headers[0], headers[2]) == (None, "oldest turns (truncation)")
    seen = "".join(server.model_calls("gamma")[0]["texts"])
    assert "gamma" in seen
    assert "alpha word" not in seen
    if not is_in_body:
        [(ignored,)] = stored_rows(server, "response", "ignored", id=previous)
        assert "oldest turns (truncation)" in str(ignored)


def test_an_upstream_that_refuses_the_length_is_a_failed_response(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    stub.play(TOO_LONG)
    body = server.openai().responses.create(model="hermes-agent", input="x")
    assert body.status == "failed"
    assert body.error is not None
    assert body.error.code == "invalid_prompt"  # SDKs have no code for it there
    assert body.error.message.startswith("context_length_exceeded: The model's server answered 400")
    stub.play(TOO_LONG)
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
