"""The end of a run names what was skipped and what was left out."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.left_out import LeftOut

def pytest_configure(config):
    config.addinivalue_line("markers", "any_database")
    config.addinivalue_line("markers", "row_locks")
    config.pluginmanager.register(LeftOut())
"""
TESTS = """
import pytest

both = pytest.mark.parametrize("database", ["sqlite", "postgresql"])

@both
@pytest.mark.any_database
def test_anywhere(database): pass

@both
@pytest.mark.any_database
def test_anywhere_too(database): pass

@both
@pytest.mark.row_locks
def test_locks(database): assert database == "postgresql"

@both
def test_both(database):
    if database == "postgresql":
        pytest.skip("PostgreSQL is not on this machine")

@pytest.mark.skipif(True, reason="npm is not on this machine")
def test_npm(): pass

@pytest.mark.skipif(True, reason="npm is not on this machine")
def test_npm_too(): pass
"""


def run(folder: Path, tests: str, *options: str) -> list[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(folder), "-p", "no:django"]
    command += ["-p", "no:cacheprovider", *options, str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_the_end_of_a_run_names_what_was_left_out(tmp_path: Path, options: tuple[str, ...]) -> None:
    lines = run(tmp_path, TESTS, *options)
    (start,) = (number for number, line in enumerate(lines) if "= left out =" in line)
    assert lines[start + 1 : start + 5] == [
        "    2 skipped: npm is not on this machine",
        "    1 skipped: PostgreSQL is not on this machine",
        "    2 left out: on PostgreSQL, as the database makes no difference to these tests",
        "    1 left out: on SQLite, which has no row locks to test",
    ]


def test_a_run_without_gaps_names_none(tmp_path: Path) -> None:
    assert "left out" not in "\n".join(run(tmp_path, "def test_it(): pass\n"))
