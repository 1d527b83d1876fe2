"""The figures of a tree by name, and what each should come to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.shape.density import count_expressions, count_long_lines, functions
from tests.shape.imports import own_imports
from tests.shape.sources import Source, read_sources
from tests.shape.tracing import Traces
from tests.shape.words import AREAS, Hit

LONG_FUNCTION_LINES = 30
TOO_LONG_FUNCTION_LINES = 60
TOO_LONG_FILE_LINES = 300
NAMED_IMPORTERS = 5

Figures = dict[str, float]


@dataclass(frozen=True)
class Row:
    name: str
    label: str
    target: float | None = None
    share: float | None = None  # the target is this share of the figure before

    def target_after(self, before: float | None) -> float | None:
        if self.share is not None and before is not None:
            return self.share * before
        return self.target


ROWS = (
    Row("request_hops", "streamed POST: calls between modules", share=0.6),
    Row("request_modules", "streamed POST: modules entered", share=0.62),
    Row("request_switches", "streamed POST: calls between packages", share=0.5),
    Row("delta_hops", "one text delta: calls between modules", share=0.56),
    Row("delta_switches", "one text delta: calls between packages", share=0.43),
    Row("imports_average", "own imports per module, average", 3.3),
    Row("imports_max", "own imports per module, most", 14),
    Row("lambdas", "lambdas per 1,000 lines", 1),
    Row("ternaries", "ternaries per 1,000 lines", 8),
    Row("comprehensions", "comprehensions per 1,000 lines", 12),
    Row("unpacks", "* and ** unpacks per 1,000 lines", 6),
    Row("long_lines", "lines over 100 characters, per cent", 1),
    Row("longest_function", "longest function, lines", TOO_LONG_FUNCTION_LINES),
    Row("functions_over_30", "functions over 30 lines"),
    Row("functions_over_60", "functions over 60 lines", 0),
    Row("longest_file", "longest file, lines", TOO_LONG_FILE_LINES),
    Row("words_source", "lines with old words: source", 19),
    Row("words_tests", "lines with old words: tests"),
    Row("words_templates", "lines with old words: templates"),
    Row("words_docs", "lines with old words: docs"),
    Row("words_total", "lines with old words: all"),
    Row("modules", "modules that are not empty"),
    Row("lines", "lines that are not blank"),
)


@dataclass(frozen=True)
class Measured:
    figures: Figures
    remarks: list[str]


def measure_sources(tree: Path) -> Measured:
    sources = [source for source in read_sources(tree) if source.text.strip()]
    figures: Figures = {"modules": len(sources)}
    figures["lines"] = _count_lines(sources)
    _add_density(figures, sources)
    remarks = _add_lengths(figures, sources)
    remarks += _add_imports(figures, sources)
    return Measured(figures, remarks)


def _count_lines(sources: Sequence[Source]) -> int:
    count = 0
    for source in sources:
        for line in source.lines:
            if line.strip():
                count += 1
    return count


def _add_density(figures: Figures, sources: Sequence[Source]) -> None:
    counts = count_expressions(sources)
    for kind in ("lambdas", "ternaries", "comprehensions", "unpacks"):
        figures[kind] = 1000 * counts[kind] / figures["lines"]
    figures["long_lines"] = 100 * count_long_lines(sources) / figures["lines"]


def _add_lengths(figures: Figures, sources: Sequence[Source]) -> list[str]:
    found = functions(sources)
    longest_file = max(sources, key=_file_length)
    figures["longest_function"] = found[0].lines
    figures["functions_over_30"] = sum(function.lines > LONG_FUNCTION_LINES for function in found)
    figures["functions_over_60"] = sum(function.lines > TOO_LONG_FUNCTION_LINES for function in found)
    figures["longest_file"] = _file_length(longest_file)
    return [
        f"Longest function: {found[0].module}.{found[0].name}",
        f"Longest file: {longest_file.name}",
    ]


def _file_length(source: Source) -> int:
    return len(source.lines)


def _add_imports(figures: Figures, sources: Sequence[Source]) -> list[str]:
    counts: Counter[str] = Counter()
    for module, imported in own_imports(sources).items():
        counts[module] = len(imported)
    figures["imports_average"] = counts.total() / len(counts)
    most = counts.most_common(NAMED_IMPORTERS)
    figures["imports_max"] = most[0][1]
    named = ", ".join(f"{module} {count}" for module, count in most)
    return [f"Most own imports: {named}"]


def word_figures(hits: Sequence[Hit]) -> Figures:
    counts = Counter(hit.area for hit in hits)
    figures: Figures = {"words_total": len(hits)}
    for area in AREAS:
        figures[f"words_{area}"] = counts[area]
    return figures


def trace_figures(traces: Traces) -> Figures:
    return {
        "request_hops": traces.request_hops,
        "request_modules": traces.request_modules,
        "request_switches": traces.request_switches,
        "delta_hops": traces.delta_hops,
        "delta_switches": traces.delta_switches,
    }
