"""The counters of ``make shape``, on sources of a few lines."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from tests.shape.density import count_expressions, count_long_lines, functions
from tests.shape.figures import ROWS, Row, measure_sources
from tests.shape.imports import own_imports
from tests.shape.report import table_line
from tests.shape.sources import Source, read_sources
from tests.shape.traced_server import package, summarise
from tests.shape.tracing import Trace, Traces
from tests.shape.words import WORDS_FILE, find_words, read_words

WORDS = read_words(WORDS_FILE.read_text())
BASELINE = WORDS_FILE.with_name("baseline.json")


def source(text: str, name: str = "responses_app.sample", file: str = "sample.py") -> Source:
    return Source(name, Path(file), dedent(text))


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("sort(key=lambda one: one)", "lambdas", 1),
        ("a if b else c if d else e", "ternaries", 2),
        ("[x for x in {y for y in z}]", "comprehensions", 2),
        ("sum(x for x in {y: y for y in z})", "comprehensions", 2),
        ("call(*a, **b)", "unpacks", 2),
        ("[*a, {**b, **c}]", "unpacks", 3),
        ("def call(*args, **kwargs): pass", "unpacks", 0),
        ("first, *rest = a", "unpacks", 0),
    ],
)
def test_dense_expressions_are_counted(text: str, kind: str, count: int) -> None:
    assert count_expressions([source(text)])[kind] == count


def test_lines_and_functions_are_measured() -> None:
    sample = source(
        f"def one():\n    pass\n\n\n@mark\nasync def two():\n    def three():\n        pass\n\n# {'x' * 100}\n"
    )
    assert count_long_lines([sample]) == 1
    assert [(found.name, found.lines) for found in functions([sample])] == [("two", 3), ("one", 2), ("three", 2)]


def test_imports_are_counted_by_module() -> None:
    importer = """
        import os
        import responses_app.ids
        from responses_app import eventlog, ids
        from responses_app.eventlog import store, Writer
        from .eventlog.store import Store
        from django.db import models

        def later():
            from responses_app.models import Response
    """
    sources = [
        source(importer),
        source("from . import store", "responses_app.eventlog", "__init__.py"),
        source("from .. import ids", "responses_app.eventlog.store"),
        source("", "responses_app.ids"),
        source("", "responses_app.models"),
    ]
    imports = own_imports(sources)
    expected = {"responses_app.ids", "responses_app.eventlog", "responses_app.eventlog.store", "responses_app.models"}
    assert imports["responses_app.sample"] == expected
    assert imports["responses_app.eventlog"] == {"responses_app.eventlog.store"}
    assert imports["responses_app.eventlog.store"] == {"responses_app.ids"}


@pytest.mark.parametrize(
    "line",
    [
        "# Somebody waits.",
        "def read_so_far():",
        "class SoFar:",
        "told_lines = 1",
        "hs-said",
        "JsonAnswer",
        "two quirks",
    ],
)
def test_old_words_are_found_in_prose_and_names(line: str) -> None:
    assert WORDS.find(line, "source") is not None


@pytest.mark.parametrize(
    "line",
    [
        "the text so far",
        "indoors, untold, foretell",
        "outstanding = understanding",
        "from typing import Any, cast",
        "return cast(str, value)",
        '"hermes.quirk"',
    ],
)
def test_other_words_are_not(line: str) -> None:
    assert WORDS.find(line, "source") is None
    assert WORDS.find(line, "tests") is None


def test_some_words_count_in_one_area() -> None:
    assert WORDS.find("def cast(stub):", "tests") is not None
    assert WORDS.find("a plaster cast", "source") is None


def test_a_tree_is_measured_without_being_imported(tmp_path: Path) -> None:
    files = {
        "responses_app/__init__.py": "",
        "responses_app/broken.py": "raise RuntimeError  # somebody imports this\n\ndef answer(): told = 1\n",
        "responses_app/migrations/0001.py": "told = 1\n",
        "templates/page.html": "<p>Nobody</p>\n",
        "docs/page.md": "Said twice, told twice: one line.\n",
        "tests/test_it.py": "whoever = 1\n",
        "tests/shape/words.py": "whoever = 1\n",
        "Makefile": "",
        "pyproject.toml": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [found.name for found in read_sources(tmp_path)] == ["responses_app", "responses_app.broken"]
    figures = measure_sources(tmp_path).figures
    assert (figures["modules"], figures["lines"], figures["longest_file"]) == (1, 2, 3)
    found = [(hit.area, str(hit.path), hit.line_number) for hit in find_words(tmp_path)]
    assert found == [
        ("source", "responses_app/broken.py", 1),
        ("source", "responses_app/broken.py", 3),
        ("tests", "tests/test_it.py", 1),
        ("templates", "templates/page.html", 1),
        ("docs", "docs/page.md", 1),
    ]


def test_calls_are_summed_up() -> None:
    store, writer, ids = "responses_app.eventlog.store", "responses_app.eventlog.writer", "responses_app.ids"
    counts = summarise([(None, store), (store, writer), (writer, writer), (store, ids), (store, ids)])
    assert counts["hops"] == 3
    assert counts["switches"] == 2
    assert counts["modules"] == [store, writer, ids]
    assert package("gateway_app.providers.openai.client") == "gateway_app.providers"


def test_a_delta_is_what_each_further_word_adds() -> None:
    short = Trace(1, 100, frozenset({"a"}), 10, [])
    long = Trace(41, 500, frozenset({"a", "b"}), 50, [])
    traces = Traces([short, short], [long, long])
    assert (traces.request_hops, traces.request_modules, traces.request_switches) == (100, 1, 10)
    assert (traces.delta_hops, traces.delta_switches) == (10, 1)


def test_a_line_of_the_table_has_before_now_and_target() -> None:
    assert table_line(Row("hops", "hops", share=0.6), 500, 310).split() == ["hops", "500", "310", "300", "missed"]
    assert table_line(Row("lambdas", "lambdas", 1), 3.4, 0.5).split() == ["lambdas", "3.4", "0.5", "1", "met"]
    assert table_line(Row("lines", "lines"), None, 12).split() == ["lines", "-", "12", "-"]


def test_each_figure_has_one_before() -> None:
    assert set(json.loads(BASELINE.read_text())) == {row.name for row in ROWS}
