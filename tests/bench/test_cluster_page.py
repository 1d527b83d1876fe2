"""The tables of docs/cluster.md, from figures that are made up."""

from pathlib import Path

import pytest

from bench.cluster_page import text, write
from bench.results import Results

pytestmark = pytest.mark.any_database
MACHINE: dict[str, str | float] = {"cpu": "A CPU", "cores": 2, "python": "3.11", "commit": "abc"}
ROLES = {"worker": 300.0, "web": 200.0, "postgresql": 100.0, "redis": 10.0}


def results(p99_ms: float = 40.0, alone_us: float = 400.0) -> Results:
    found = Results(MACHINE)
    figures = {"added_p50_ms": 9.0, "added_p99_ms": p99_ms, "cpu_us_per_event": 610.0, "foreign_share": 0.25}
    for role, cpu_us in ROLES.items():
        figures |= {f"cpu_us_per_event {role}": cpu_us, f"memory_mb {role}": 120.0}
    found.add("across", "responses", "cluster", figures)
    found.add("across", "responses", "one process", {"cpu_us_per_event": alone_us, "foreign_share": 0.2})
    found.add("cancel", "responses", "cluster", {"cancel_p50_ms": 50.0, "cancel_max_ms": 90.0, "foreign_share": 0.1})
    for target, rate in (("one process", 7_000.0), ("1 worker", 5_000.0), ("cluster", 8_000.0)):
        found.add("spread_flood", "responses", target, {"rate": rate, "foreign_share": 0.1})
    read = {"added_p50_ms": 5.0, "added_p99_ms": 20.0, "cpu_us_per_reader_event": 24.0, "foreign_share": 0.0}
    found.add("readers", "responses", "cluster", read)
    return found


def test_the_tables_have_goals_roles_and_sizes() -> None:
    page = text(results())
    assert "| 9 ms / 40 ms | ≤ 10 / 50 ms ✓ | 25% |" in page
    assert "| 50 ms / 90 ms | ≤ 300 ms ✓ | 10% |" in page
    assert "| 610 µs, 1.52 × | ≤ 1.6 × ✓ | 20% |" in page
    assert "| 7,000/s / 5,000/s / 8,000/s |" in page
    assert "| workers | 300 µs | – | 120 MB |" in page
    assert "about 500 readers" in page
    assert "| 20,000 (400 streams of 50 tokens) | 10 | 7 | 4 | 200 |" in page


def test_a_goal_that_is_missed_has_a_cross() -> None:
    assert "≤ 10 / 50 ms ✗" in text(results(p99_ms=51.0))
    assert "≤ 1.6 × ✗" in text(results(alone_us=300.0))


def test_the_figures_are_stored_beside_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- cluster: begin -->\nold\n<!-- cluster: end -->\nafter\n")
    write(results(), tmp_path / "cluster.json", page)
    assert "old" not in page.read_text()
    assert page.read_text().endswith("<!-- cluster: end -->\nafter\n")
    assert '"readers"' in (tmp_path / "cluster.json").read_text()
