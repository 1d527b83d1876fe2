"""One more turn costs the same however long its history is."""

import json
from pathlib import Path
from typing import Any

from tests.support.migrated_database import Database
from tests.support.server import Server

SLACK = 2  # rows: PostgreSQL passes over what earlier measurements rolled back


ADMISSIONS = (
    "chain",
    "chain, window known",
    "session",
    "session, unstored",
    "conversation",
    "conversation, window known",
    "resent",
    "resent, window known",
)
CONTEXTS = ("cut", "conversation, cut", "compacted")


def test_a_late_turn_costs_what_an_early_one_costs(database: Database, tmp_path: Path) -> None:
    """One test for all ways, as all of them share the long histories."""
    server = database.server(tmp_path / "home", Server, HERMES_CONTEXT_LENGTH="250")
    printed = server.manage("shell", "-c", "from tests.support.admission_costs import main; main()")
    costs: dict[str, Any] = json.loads(printed.splitlines()[-1])
    print(json.dumps(costs))
    for way in ADMISSIONS:
        early, late = (found[way] for found in costs["admissions"])
        assert late[0] == early[0], way
        assert late[1] <= early[1] + SLACK, way
    for way in CONTEXTS:
        early, late = (found[way] for found in costs["contexts"])
        assert late[0] == early[0], way
        assert late[1] <= early[1] + SLACK, way
        assert late[2] == early[2] < 30, way
