"""One real model behind one real server of Hermes Site, once for each kind of model server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.migrated_database import Database
from tests.support.real_models import (
    COMMANDS,
    MISSING,
    MODEL_NAME,
    RealModel,
    is_installed,
    running_model,
)
from tests.support.recording_proxy import RecordingProxy
from tests.support.server import Server

TEST_SECS = 600  # a model without a graphics processor, on a busy machine


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
    with running_model(provider, tmp_path_factory.mktemp("model")) as running:
        yield running


@pytest.fixture(scope="session")
def proxy(model: RealModel) -> Iterator[RecordingProxy]:
    with RecordingProxy(model.port) as running:
        yield running


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return Database(tmp_path_factory.mktemp("template"), None)


@pytest.fixture(scope="session")
def serve(homes: Database) -> Callable[[Path, RealModel, RecordingProxy], Server]:
    """The product's own settings: what an operator has who follows docs/models.md."""

    def start(home: Path, model: RealModel, proxy: RecordingProxy) -> Server:
        server = homes.server(
            home,
            Server,
            DJANGO_SETTINGS_MODULE="hermes_site.settings",
            HERMES_PROVIDER=model.provider,
            HERMES_BASE_URL=f"http://127.0.0.1:{proxy.port}/v1",
            HERMES_MODEL=MODEL_NAME,
            HERMES_CONTEXT_LENGTH=str(model.context),
        )
        return server.start()

    return start


@pytest.fixture(scope="session")
def hermes(
    serve: Callable[[Path, RealModel, RecordingProxy], Server],
    model: RealModel,
    proxy: RecordingProxy,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    server = serve(tmp_path_factory.mktemp("home") / "h", model, proxy)
    yield server
    server.kill()
