"""One real model behind one real server of Hermes Site, once for each kind of model server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.migrated_database import Database
from tests.support.real_models import (
    COMMANDS,
    MISSING,
    MODEL_NAME,
    Options,
    RealModel,
    is_installed,
    running_model,
)
from tests.support.recording_proxy import RecordingProxy
from tests.support.server import Server

TEST_SECS = 600  # a model without a graphics processor, on a busy machine

Serve = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECS))


@pytest.fixture(scope="session", params=sorted(COMMANDS))
def provider(request: pytest.FixtureRequest) -> str:
    if not is_installed():
        pytest.skip(MISSING)
    return str(request.param)


@pytest.fixture(scope="session")
def model(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    """At temperature 0, the same prompt has the same answer."""
    with running_model(provider, tmp_path_factory.mktemp("model"), Options(is_exact=True)) as running:
        yield running


@pytest.fixture(scope="session")
def proxy(model: RealModel) -> Iterator[RecordingProxy]:
    with RecordingProxy(model.port) as running:
        yield running


@pytest.fixture(scope="session")
def homes(templates: Path) -> Database:
    return Database(templates, None)


@pytest.fixture(scope="session")
def serve(homes: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts a server with the product's own settings: what an operator has who follows docs/models.md."""
    made: list[Server] = []

    def start(model: RealModel, port: int, **env: str) -> Server:
        home: Path = tmp_path_factory.mktemp("home") / "h"
        settings = {
            "DJANGO_SETTINGS_MODULE": "hermes_site.settings",
            "HERMES_PROVIDER": model.provider,
            "HERMES_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "HERMES_MODEL": MODEL_NAME,
            "HERMES_STREAM_RETRIES": "10",  # a busy machine takes long to start the model again
        }
        made.append(homes.server(home, Server, **settings, **env))
        made[-1].client_secs = TEST_SECS
        return made[-1].start()

    yield start
    for server in made:
        server.kill()


@pytest.fixture(scope="session")
def hermes(serve: Serve, model: RealModel, proxy: RecordingProxy) -> Server:
    return serve(model, proxy.port, HERMES_CONTEXT_LENGTH=str(model.options.context))
