"""One server with a profile for each dialect, each in front of a model server of its own."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.dialects.dialect import Dialect
from tests.dialects.registry import DIALECTS
from tests.dialects.upstream import DialectUpstream, Front
from tests.support.checker import check_every_log
from tests.support.migrated_database import Database
from tests.support.server import Server

pytest.register_assert_rewrite("tests.dialects.cases")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-dialects", action="store_true", help="the whole matrix instead of a sample of it")


@pytest.fixture(scope="session")
def front(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with ExitStack() as stack:
        upstreams = {}
        profiles = {}
        for name, dialect in DIALECTS.items():
            upstreams[name] = DialectUpstream(dialect)
            stack.enter_context(upstreams[name])
            profiles[name] = _profile(dialect, upstreams[name].url)
        home = tmp_path_factory.mktemp("dialects") / "h"
        server = database.server(home, Server, HERMES_CORE_PROMPT="on", HERMES_LEASE_SECS="2")
        stack.callback(server.kill)
        (server.home / "config.yaml").write_text(json.dumps({"profiles": profiles}))
        yield Front(server.start(), upstreams)
        check_every_log(server)
        assert "Traceback" not in server.log, server.log


def _profile(dialect: Dialect, url: str) -> dict[str, object]:
    return {
        "provider": dialect.provider,
        "model": "m",
        "base_url": url,
        "api_key": "k-0123456789",
        "api_mode": dialect.api_mode,
        "toolset": ["calculate"],
    }
