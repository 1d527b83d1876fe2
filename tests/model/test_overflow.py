"""A prompt that does not fit into the context window of the model's server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.real_models import MODEL_NAME, RealModel, running_model
from tests.support.scripted_requests import respond
from tests.support.server import Server

SMALL_CONTEXT = 2560  # the tools of the server take most of it
LONG = "The fox runs. " * 1000


@pytest.fixture(scope="module")
def small_model(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    with running_model(provider, tmp_path_factory.mktemp("small"), SMALL_CONTEXT) as running:
        yield running


@pytest.fixture
def server(small_model: RealModel, homes: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(**env: str) -> Server:
        server = homes.server(
            tmp_path / "h",
            Server,
            DJANGO_SETTINGS_MODULE="hermes_site.settings",
            HERMES_PROVIDER=small_model.provider,
            HERMES_BASE_URL=f"http://127.0.0.1:{small_model.port}/v1",
            HERMES_MODEL=MODEL_NAME,
            HERMES_CORE_PROMPT="off",
            **env,
        )
        made.append(server)
        return server.start()

    yield start
    for server in made:
        server.kill()


def test_an_unknown_window_that_is_exceeded_fails_the_turn_with_the_reason(server: Callable[..., Server]) -> None:
    running = server()
    body = respond(running, input=LONG, temperature=0, max_output_tokens=20, tool_choice="none")
    assert body["status"] == "failed"
    assert body["error"]["code"] == "context_length_exceeded"
    check_log(running, body["id"])
    again = respond(running, input="hi", temperature=0, max_output_tokens=20, tool_choice="none")
    assert again["status"] in ("completed", "incomplete")


def test_a_known_window_that_is_exceeded_is_refused_before_the_model_is_asked(server: Callable[..., Server]) -> None:
    running = server(HERMES_CONTEXT_LENGTH=str(SMALL_CONTEXT))
    with running.http() as client:
        answer = client.post("/v1/responses", json={"input": LONG, "tool_choice": "none"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
