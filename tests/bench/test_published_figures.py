"""README and docs/performance.md have the figures of bench/results.json."""

import json
from pathlib import Path

import pytest

from bench.commands import RESULTS, about
from bench.page import PAGE
from bench.readme import README, write_figures
from bench.results import Results
from bench.table import markdown

pytestmark = pytest.mark.any_database


@pytest.fixture
def published() -> Results:
    return Results.from_json(json.loads(RESULTS.read_text()))


def test_the_page_has_the_figures_of_the_last_run(published: Results) -> None:
    assert f"{about(published)}\n\n{markdown(published)}\n" in PAGE.read_text()


def test_the_readme_has_the_figures_of_the_last_run(published: Results, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(README.read_text())
    write_figures(published, page)
    assert page.read_text() == README.read_text()


def test_figures_that_were_not_measured_leave_their_row(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(README.read_text())
    write_figures(Results({}), page)
    assert page.read_text() == README.read_text()


def test_a_readme_without_the_rows_is_refused(published: Results, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Hermes Site\n")
    with pytest.raises(SystemExit, match="time to first text"):
        write_figures(published, page)
