"""How much happens per line: dense expressions, long lines, long functions."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.shape.sources import Source

MAX_LINE_CHARS = 100
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Function:
    name: str
    module: str
    lines: int


def count_expressions(sources: Sequence[Source]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for source in sources:
        for node in ast.walk(source.parse()):
            counts.update(_kinds(node))
    return counts


def _kinds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Lambda):
        yield "lambdas"
    elif isinstance(node, ast.IfExp):
        yield "ternaries"
    elif isinstance(node, COMPREHENSIONS):
        yield "comprehensions"
    elif _is_unpack(node):
        yield "unpacks"
    elif isinstance(node, ast.Dict):
        for key in node.keys:
            if key is None:  # {**other}
                yield "unpacks"


def _is_unpack(node: ast.AST) -> bool:
    """``*`` where a value is read, and ``**`` of a call. Signatures and ``first, *rest = ...`` unpack no value here."""
    if isinstance(node, ast.Starred):
        return isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.keyword) and node.arg is None


def count_long_lines(sources: Sequence[Source]) -> int:
    count = 0
    for source in sources:
        for line in source.lines:
            if len(line) > MAX_LINE_CHARS:
                count += 1
    return count


def functions(sources: Sequence[Source]) -> list[Function]:
    """Functions and methods, nested ones too, from ``def`` to the last line; the longest first."""
    found = []
    for source in sources:
        for node in ast.walk(source.parse()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last_line = node.end_lineno or node.lineno
                found.append(Function(node.name, source.name, last_line - node.lineno + 1))
    return sorted(found, key=_by_length, reverse=True)


def _by_length(function: Function) -> int:
    return function.lines
