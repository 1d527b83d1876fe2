"""The plans of every hot statement in PostgreSQL with a million ended responses."""

import os
import subprocess
import sys

import pytest

from tests.support.migrated_database import TEMPLATE, Database
from tests.support.server import ROOT

ROWS = 1_000_000
LIMIT_SECS = 3000


@pytest.mark.timeout(LIMIT_SECS + 60)
def test_every_hot_statement_follows_an_index_at_a_million_rows(database: Database) -> None:
    """The planner chooses by itself here: nothing forbids it to read a table whole."""
    assert database.cluster is not None
    env = os.environ | {
        "DATABASE_URL": database.cluster.url("postgres"),
        "TEST_DATABASE_TEMPLATE": TEMPLATE,
        "TEST_PLAN_ROWS": str(ROWS),
    }
    file = "tests/runtime/test_query_plans.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", file, "-p", "no:cacheprovider", f"--timeout={LIMIT_SECS}"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECS,
    )
    assert done.returncode == 0, done.stdout
