"""The figures in README's table: medians of the same results as on docs/performance.md."""

import re
from pathlib import Path

from bench.results import Results
from bench.table import OURS, ms, us
from bench.targets import ROOT

README = ROOT / "README.md"
API = "chat"
BESIDE = "litellm"
FIRST_TEXT = "time to first text that it adds (chat)"
PER_TOKEN = "CPU per streamed token, 50 streams (chat)"


def write_figures(results: Results, page: Path = README) -> None:
    """Figures that were not measured leave their row as it is."""
    text = page.read_text()
    for label, cells in _rows(results).items():
        row = f"| {label} | {cells[OURS]} | | {cells[BESIDE]} | | |"
        pattern = rf"^\| {re.escape(label)} \|.*$"
        if not re.search(pattern, text, re.MULTILINE):
            raise SystemExit(f"{page} has no row {label!r}.")
        text = re.sub(pattern, row, text, flags=re.MULTILINE)
    page.write_text(text)


def _rows(results: Results) -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {FIRST_TEXT: {}, PER_TOKEN: {}}
    direct = results.middle("first_text", API, "direct", "first_p50_ms")
    for target in (OURS, BESIDE):
        first = results.middle("first_text", API, target, "first_p50_ms")
        per_token = results.middle("streams_50", API, target, "cpu_us_per_token")
        if first is not None and direct is not None:
            rows[FIRST_TEXT][target] = ms(first - direct)
        if per_token is not None:
            rows[PER_TOKEN][target] = us(per_token)
    return {label: cells for label, cells in rows.items() if len(cells) == 2}
