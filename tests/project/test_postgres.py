"""The in-process tests once more, on PostgreSQL."""

import os
import subprocess
import sys

import pytest

from tests.support.migrated_database import TEMPLATE, Database
from tests.support.server import ROOT


@pytest.mark.timeout(300)  # several modules in one process, however busy the machine is
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "names",
    [
        "eventlog/test_writer.py eventlog/test_seek.py eventlog/test_snapshots.py eventlog/test_watcher.py",
        "dashboard/test_queries.py admin/test_queries.py commands/test_short_transactions.py "
        "eventlog/test_compiled_statements.py",
        "runtime/test_retention.py runtime/test_query_plans.py runtime/test_retention_costs.py",
    ],
)
def test_what_runs_in_process_runs_on_postgresql(database: Database, names: str) -> None:
    assert database.cluster is not None
    files = [f"tests/{name}" for name in names.split()]
    env = os.environ | {
        "DATABASE_URL": database.cluster.url("postgres"),
        "TEST_DATABASE_TEMPLATE": TEMPLATE,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *files, "-p", "no:cacheprovider", "-k", "not server"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
