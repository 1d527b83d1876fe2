"""The configuration of the Open WebUI guide, as it is written there."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.migrated_database import Database
from tests.support.scripted_requests import call
from tests.support.server import ROOT, Server, script

pytestmark = pytest.mark.any_database

OWN = {"type": "function", "function": {"name": "own_search", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def guided(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    guide = (ROOT / "docs/guide/open-webui.md").read_text()
    [config] = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    server = database.server(tmp_path_factory.mktemp("guide") / "home", Server)
    (server.home / "config.yaml").write_text(config)
    server.start()
    yield server
    server.kill()


def offered(client: httpx.Client, model: str, **fields: Any) -> str:
    """The result of a call of a tool that is not there: it lists those that are."""
    messages = [{"role": "user", "content": script(call("missing_tool"))}]
    answer = client.post("/v1/chat/completions", json={"model": model, "messages": messages, **fields})
    assert answer.status_code == 200, answer.text
    found: str = answer.json()["choices"][0]["message"]["content"]
    return found


def test_its_chats_have_both_kinds_of_tools_and_its_titles_none(guided: Server) -> None:
    with guided.http() as client:
        both = offered(client, "assistant", tools=[OWN])
        assert "own_search" in both
        assert "calculate" in both
        assert "The tools are: none." in offered(client, "titles")
