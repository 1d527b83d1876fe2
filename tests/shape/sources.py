"""The Python files of the product, read from a checkout and parsed; none of them is imported."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("responses_app", "gateway_app", "hermes_site")


@dataclass(frozen=True)
class Source:
    name: str  # of the module: responses_app.eventlog.store
    path: Path
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def parse(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))


def read_sources(tree: Path) -> list[Source]:
    found = []
    for path in python_files(tree):
        name = module_name(path.relative_to(tree))
        found.append(Source(name, path, path.read_text()))
    return found


def python_files(tree: Path) -> Iterator[Path]:
    """Migrations are left out: they are generated, and stay as they are once they are applied."""
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def module_name(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)
