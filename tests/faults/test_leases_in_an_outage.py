"""A database that is away for longer than a lease: work stays with the process that runs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.flaky_proxy import Link
from tests.support.migrated_database import Database
from tests.support.server import (
    Server,
    eventually,
    script,
    server_beside,
    text,
)

LEASE_SECS = 3
RUNNING = 8
SILENT = f"""
SELECT count(*) FROM gateway_app_runtimeprocess
WHERE heartbeat_at < statement_timestamp() - interval '{LEASE_SECS + 1} seconds'
"""
ADD_A_DEAD_OWNER = """
INSERT INTO gateway_app_runtimeprocess (
    id, host, pid, pid_started, role, state, active_responses, started_at, heartbeat_at, exit_reason
)
SELECT 'gone', 'elsewhere', pid, pid_started, role, state, active_responses, started_at, heartbeat_at, exit_reason
FROM gateway_app_runtimeprocess LIMIT 1
"""
HAND_TO_A_DEAD_OWNER = """
UPDATE responses_app_response
SET lease_owner = 'gone', lease_until = statement_timestamp() - interval '1 second'
WHERE id = ?
"""
STATES = "SELECT id, state FROM gateway_app_runtimeprocess WHERE state <> 'running'"
CLAIMS = "SELECT attempt, crashes, status FROM responses_app_response WHERE id = ?"


pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture
def link(database: Database) -> Iterator[Link]:
    assert database.cluster is not None
    with Link(database.cluster.port) as joined:
        yield joined


@pytest.fixture
def pair(database: Database, link: Link, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two servers that reach one PostgreSQL over a link."""
    assert database.cluster is not None
    env = {"HERMES_LEASE_SECS": str(LEASE_SECS), "HERMES_SWEEP_SECS": "0.2"}
    one = database.server(tmp_path / "one", Server, **env)
    direct = one.env["DATABASE_URL"]
    behind = direct.replace(f":{database.cluster.port}/", f":{link.port}/")
    other = server_beside(one, tmp_path / "other", **env)
    for server in (one, other):
        server.env["DATABASE_URL"] = behind
        server.start()
        server.env["DATABASE_URL"] = direct  # for the test's own look at the tables
    yield one, other
    one.kill()
    other.kill()


def test_no_work_changes_hands_and_no_crash_is_counted(pair: tuple[Server, Server], link: Link) -> None:
    one, other = pair
    asked = script({"say": "before "}, {"gate": "back"}, {"say": "after"})
    ids = [_ask(one, asked) for _ in range(RUNNING)]
    left = _ask(other, asked)
    eventually(lambda: all(text(one.body(pk)) == "before " for pk in [*ids, left]))
    link.cut()
    eventually(lambda: one.query(SILENT) == [(2,)], 30, "the silence of both")
    one.change(ADD_A_DEAD_OWNER)
    one.change(HAND_TO_A_DEAD_OWNER, left)
    link.join()
    # Both have waited for each other, and look for the work of the dead again.
    eventually(lambda: one.query(CLAIMS, left)[0][:2] == (2, 1), 60, "the claim of what a dead process left")
    assert one.query(STATES) == [("gone", "lost")]
    one.open_gate("back")
    other.open_gate("back")
    assert one.ended(left)["status"] == "completed"
    for response_id in ids:
        assert text(one.ended(response_id)) == "before after"
        assert one.query(CLAIMS, response_id) == [(1, 0, "completed")]


def _ask(server: Server, asked: str) -> str:
    return server.openai().responses.create(model="hermes-agent", input=asked, background=True).id
