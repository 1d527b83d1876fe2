"""docs/performance.md: what stands between two marker lines is written by the benchmark."""

from pathlib import Path

from bench.targets import ROOT

PAGE = ROOT / "docs" / "performance.md"


def replace_part(name: str, text: str, page: Path = PAGE) -> None:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found_begin, rest = page.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise SystemExit(f"{page} has no lines {begin} and {end}.")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
