"""A server whose model has a small context window, and prompts of nothing but what a test sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.migrated_database import Database
from tests.support.model_stub import ModelStub
from tests.support.server import Server


@contextmanager
def small_window_server(database: Database, home: Path, model: ModelStub, tokens: int, config: str) -> Iterator[Server]:
    made = database.server(
        home,
        Server,
        HERMES_PROVIDER="custom",
        HERMES_BASE_URL=model.url,
        HERMES_MODEL="m",
        HERMES_CONTEXT_LENGTH=str(tokens),
        HERMES_CORE_PROMPT="off",
    )
    (home / "config.yaml").write_text(config)
    try:
        yield made.start()
    finally:
        made.kill()
