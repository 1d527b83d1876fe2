"""Databases of every format version stay readable: each golden set was written by the code of its time."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from responses_app.models.segments import FORMAT_VERSION
from tests.support.approvals import decide
from tests.support.checker import check_every_log
from tests.support.server import ROOT, Server, text

GOLDEN = ROOT / "tests" / "golden"
# Its hour for consent is over when this test runs.
STILL_WAITING = """
UPDATE responses_app_toolevent SET expires_at = '2999-01-01 00:00:00' WHERE expires_at IS NOT NULL;
UPDATE responses_app_response SET parked_until = '2999-01-01 00:00:00' WHERE parked_until IS NOT NULL;
"""
# An ended row whose end is not known: rows of old databases may lack it.
ENDLESS = "UPDATE responses_app_response SET finished_at = NULL WHERE id = (SELECT max(id) FROM responses_app_response "
ENDLESS += "WHERE status = 'completed');"
STATUS_DISAGREES = "(finished_at IS NULL) <> (status IN ('queued', 'in_progress'))"
SETS = sorted(path.name.removesuffix(".sql.gz") for path in GOLDEN.glob("*.sql.gz"))


def test_the_current_format_has_a_golden_set() -> None:
    assert f"v{FORMAT_VERSION}" in SETS, "run python -m tests.golden.make"


@pytest.mark.parametrize("name", SETS)
def test_a_database_of_that_version_says_the_same_and_goes_on(name: str, tmp_path: Path) -> None:
    reported: dict[str, dict[str, Any]] = json.loads(gzip.decompress((GOLDEN / f"{name}.json.gz").read_bytes()))
    with closing(sqlite3.connect(tmp_path / "hermes.sqlite3")) as database:
        database.executescript(gzip.decompress((GOLDEN / f"{name}.sql.gz").read_bytes()).decode())
        database.executescript(STILL_WAITING + ENDLESS)
    server = Server(tmp_path)
    server.manage("migrate", "--verbosity", "0")
    assert server.query(f"SELECT count(*) FROM responses_app_response WHERE {STATUS_DISAGREES}") == [(0,)]
    server.start()
    try:
        waiting = []
        for response_id, expected in reported.items():
            assert server.body(response_id) == expected["body"]
            if expected["frames"]:
                assert [frame.decode() for frame in server.replay(response_id)] == expected["frames"]
            else:
                waiting.append(response_id)
        [parked] = waiting
        decide(server, parked, "once")
        assert server.ended(parked)["status"] == "completed"
        assert text(server.body(parked)).startswith("may I? ")
        completed = [pk for pk, expected in reported.items() if expected["body"]["status"] == "completed"]
        answer = server.openai().responses.create(
            model="hermes-agent", input="go on", previous_response_id=completed[0]
        )
        assert answer.status == "completed"
        assert check_every_log(server) == len(reported) + 1
    finally:
        server.kill()
