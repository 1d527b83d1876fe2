"""A prompt that does not fit into the context window of the model's server."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.checker import check_log
from tests.support.real_models import Options, RealModel, running_model
from tests.support.scripted_requests import respond
from tests.support.server import Server, eventually

SMALL = Options(context=1024)
LONG = "The fox runs. " * 400
REFUSED = (400, "context_length_exceeded")
SHORT = {"temperature": 0, "max_output_tokens": 20}


@pytest.fixture(scope="module")
def small_model(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    with running_model(provider, tmp_path_factory.mktemp("small"), SMALL) as running:
        yield running


def test_a_prompt_that_the_model_refuses_fails_the_turn_with_the_reason(
    serve: Callable[..., Server], small_model: RealModel
) -> None:
    too_large = str(SMALL.context * 4)  # the operator's figure comes before the one that the server reports
    server = serve(small_model, small_model.port, HERMES_CONTEXT_LENGTH=too_large)
    body = respond(server, input=LONG, **SHORT)
    assert body["status"] == "failed"
    assert body["error"]["code"] == "invalid_prompt"  # OpenAI's types have no code for the length
    assert f"{SMALL.context} tokens" in body["error"]["message"]
    check_log(server, body["id"])
    after = respond(server, input="hi", **SHORT)
    assert after["status"] in ("completed", "incomplete"), after["error"]


@pytest.mark.parametrize("provider", ["llamacpp"], indirect=True)
def test_a_window_that_the_model_server_reports_is_kept_to(
    serve: Callable[..., Server], small_model: RealModel
) -> None:
    server = serve(small_model, small_model.port)
    respond(server, input="hi", **SHORT)  # the model's server is asked for its window when a turn needs it
    eventually(lambda: _refusal(server) == REFUSED, 30, "the window to be known")


def test_a_known_window_that_is_exceeded_is_refused_before_the_model_is_asked(
    serve: Callable[..., Server], small_model: RealModel
) -> None:
    server = serve(small_model, small_model.port, HERMES_CONTEXT_LENGTH=str(SMALL.context))
    assert _refusal(server) == REFUSED


def _refusal(server: Server) -> tuple[int, str | None]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": LONG})
    return answer.status_code, (answer.json()["error"] or {}).get("code")
