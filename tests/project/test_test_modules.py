"""The test modules themselves: what several of them need is in tests/support."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.server import ROOT

TESTS = ROOT / "tests"
# Where the database is the subject: its faults, its locks, its plans, the rows of an upgrade, an archive, a seed
# or a queue.
RAW_SQL = (
    "tests/eventlog/",
    "tests/project/test_upgraded_profiles.py",
    "tests/faults/",
    "tests/golden/",
    "tests/support/",
    "tests/commands/test_archive.py",
    "tests/commands/test_seed_responses.py",
    "tests/commands/test_short_transactions.py",
    "tests/dashboard/test_queries.py",
    "tests/project/test_health.py",
    "tests/responses/test_context_reading.py",
    "tests/responses/test_deleted_content.py",
    "tests/responses/test_disconnect.py",
    "tests/runtime/test_lost_turns.py",
    "tests/runtime/test_retention_costs.py",
    "tests/runtime/test_start_hints.py",
)
QUERIES = ("query", "change")  # the methods of a test server that take SQL
STATEMENT = re.compile(r"\s*(SELECT|UPDATE|INSERT INTO|DELETE FROM|LOCK TABLE|BEGIN IMMEDIATE|WITH RECURSIVE)\b")
TEST_MODULES = {path.stem for path in [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]}


def imported_names(path: Path) -> Iterator[str]:
    """The modules, and each name that is imported from one: it can be a module too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_module_imports_a_test_module_or_a_conftest() -> None:
    wrong: list[str] = []
    for path in TESTS.rglob("*.py"):
        for name in imported_names(path):
            if name.startswith("tests.") and not TEST_MODULES.isdisjoint(name.split(".")):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == [], "move what is shared to tests/support"


def has_raw_sql(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.match(node.value):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in QUERIES:
            return True
    return False


def test_raw_sql_is_written_only_where_the_database_is_the_subject() -> None:
    """Other tests use the API, or the named helpers in tests/support/stored_rows.py."""
    found: set[str] = set()
    for path in TESTS.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if has_raw_sql(path) and not name.startswith(RAW_SQL):
            found.add(name)
    assert found == set()
