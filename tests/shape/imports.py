"""Which modules of the product each module imports."""

import ast
from collections.abc import Iterator, Sequence

from tests.shape.sources import Source


def own_imports(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Distinct modules of ours by importing module, at the top and inside functions."""
    known = {source.name for source in sources}
    imports = {}
    for source in sources:
        imported = set(_imported(source, known))
        imports[source.name] = imported - {source.name}
    return imports


def _imported(source: Source, known: set[str]) -> Iterator[str]:
    for node in ast.walk(source.parse()):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, source, known)


def _imported_from(node: ast.ImportFrom, source: Source, known: set[str]) -> Iterator[str]:
    """``from package import name`` means package.name where that is a module, and the package otherwise."""
    origin = _origin(node, source)
    for alias in node.names:
        submodule = f"{origin}.{alias.name}"
        if submodule in known:
            yield submodule
        elif origin in known:
            yield origin


def _origin(node: ast.ImportFrom, source: Source) -> str:
    if node.level == 0:
        return node.module or ""
    parents = source.name.split(".")
    levels_up = node.level - 1 if source.is_package else node.level
    kept = parents[: len(parents) - levels_up]
    if node.module:
        kept.append(node.module)
    return ".".join(kept)
