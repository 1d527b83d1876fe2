"""The in-process tests of the writer once more, on PostgreSQL."""

import os
import subprocess
import sys

from tests.databases import PostgresCluster
from tests.harness import ROOT


def test_the_writer_keeps_its_promises_on_postgresql(cluster: PostgresCluster) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/test_writer.py", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": cluster.url("postgres")},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
