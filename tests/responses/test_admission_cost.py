"""One more turn costs the same however long its history is."""

import json
from typing import Any

import pytest

from tests.support.migrated_database import Database
from tests.support.server import Server

SLACK = 2  # rows: PostgreSQL passes over what earlier measurements rolled back


@pytest.fixture(scope="module")
def costs(database: Database, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("costs") / "home"
    server = database.server(home, Server, HERMES_CONTEXT_LENGTH="250")
    printed = server.manage("shell", "-c", "from tests.support.admission_costs import main; main()")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    print(json.dumps(found))
    return found


@pytest.mark.parametrize(
    "way",
    [
        "chain",
        "chain, window known",
        "session",
        "session, unstored",
        "conversation",
        "conversation, window known",
        "resent",
        "resent, window known",
    ],
)
def test_a_late_turn_is_admitted_with_the_queries_and_rows_of_an_early_one(costs: dict[str, Any], way: str) -> None:
    early, late = (found[way] for found in costs["admissions"])
    assert late[0] == early[0]
    assert late[1] <= early[1] + SLACK


@pytest.mark.parametrize("way", ["cut", "conversation, cut", "compacted"])
def test_the_context_of_a_late_turn_reads_only_what_is_sent(costs: dict[str, Any], way: str) -> None:
    early, late = (found[way] for found in costs["contexts"])
    assert late[0] == early[0]
    assert late[1] <= early[1] + SLACK
    assert late[2] == early[2] < 30
