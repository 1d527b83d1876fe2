"""The in-process tests once more, on PostgreSQL."""

import os
import subprocess
import sys

import pytest

from tests.support.databases import PostgresCluster
from tests.support.server import ROOT


@pytest.mark.parametrize(
    "names",
    [
        "eventlog/test_writer.py",
        "dashboard/test_queries.py",
        "runtime/test_retention.py",
        "admin/test_queries.py",
        "eventlog/test_seek.py eventlog/test_snapshots.py eventlog/test_watcher.py",
        "runtime/test_query_plans.py runtime/test_retention_costs.py commands/test_short_transactions.py",
    ],
)
def test_what_runs_in_process_runs_on_postgresql(cluster: PostgresCluster, names: str) -> None:
    files = [f"tests/{name}" for name in names.split()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *files, "-p", "no:cacheprovider", "-k", "not server"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": cluster.url("postgres")},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout
