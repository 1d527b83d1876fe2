"""What ``make shape`` prints."""

from collections import Counter
from collections.abc import Sequence

from tests.shape.figures import ROWS, Figures, Row
from tests.shape.tracing import Trace, Traces
from tests.shape.words import Hit

PRINTED_PAIRS = 40


def print_table(before: Figures, now: Figures) -> None:
    print(f"{'':<42}{'before':>10}{'now':>10}{'target':>10}")
    for row in ROWS:
        if row.name in now:
            print(table_line(row, before.get(row.name), now[row.name]))


def table_line(row: Row, before: float | None, now: float) -> str:
    target = row.target_after(before)
    verdict = ""
    if target is not None:
        verdict = "  met" if now <= target else "  missed"
    return f"{row.label:<42}{_number(before):>10}{_number(now):>10}{_number(target):>10}{verdict}"


def _number(figure: float | None) -> str:
    if figure is None:
        return "-"
    if figure >= 100 or figure == int(figure):
        return f"{figure:,.0f}"
    return f"{figure:.1f}"


def print_hits(hits: Sequence[Hit]) -> None:
    for hit in hits:
        print(f"{hit.path}:{hit.line_number}: {hit.line}  [{hit.word.instead}]")


def print_hops(traces: Traces) -> None:
    """The most frequent pairs of caller and callee, in one run of each request."""
    short, long = traces.short[-1], traces.long[-1]
    request = _pairs(short)
    added = _pairs(long) - request
    print("\nCalls between modules in a request:")
    for (caller, callee), count in request.most_common(PRINTED_PAIRS):
        print(f"{count:>6}  {caller} -> {callee}")
    print("\nCalls between modules for each text delta:")
    for (caller, callee), count in added.most_common(PRINTED_PAIRS):
        print(f"{count / (long.deltas - short.deltas):>6.1f}  {caller} -> {callee}")


def _pairs(trace: Trace) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for caller, callee, count in trace.pairs:
        pairs[caller, callee] = count
    return pairs
