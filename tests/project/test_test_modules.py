"""The test modules themselves: what several of them need is in tests/support."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.server import ROOT

TESTS = ROOT / "tests"
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
