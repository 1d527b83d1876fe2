"""Log lines: an exception is written down with its types and places, never with its message."""

import logging
import sys
import traceback

import pytest

from gateway_app.config.logs import ContentFreeFormatter, without_details

SECRET = "what the user asked"


def formatted(error: BaseException) -> str:
    try:
        raise error
    except BaseException:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "it failed", (), sys.exc_info())
    return ContentFreeFormatter("{message}", style="{").format(record)


def test_a_traceback_has_types_and_places_and_no_message() -> None:
    error = ValueError(SECRET)
    error.__cause__ = KeyError(SECRET)
    line = formatted(error)
    assert line.startswith("it failed\nTraceback (most recent call last):\n")
    assert line.index("builtins.KeyError") < line.index("builtins.ValueError")
    assert "test_log_format.py" in line
    assert SECRET not in line


def test_what_is_missing_in_the_program_is_named() -> None:
    assert formatted(ImportError("cannot import name 'expand'")).endswith("cannot import name 'expand'")


def test_the_parts_of_a_group_are_named() -> None:
    line = formatted(ExceptionGroup(SECRET, [ValueError(SECRET), TypeError(SECRET)]))
    assert "builtins.ValueError" in line
    assert "builtins.TypeError" in line
    assert SECRET not in line


@pytest.mark.parametrize(
    ("library", "text", "kept"),
    [
        ("asyncio", "Task exception was never retrieved\nfuture: %s", "Task exception was never retrieved"),
        ("asyncio", "Exception in callback deliver(%s)", "Exception in callback deliver"),
        ("daphne.server", "Exception inside application: %s", "Exception inside application"),
    ],
)
def test_libraries_quote_nothing(library: str, text: str, kept: str) -> None:
    record = logging.LogRecord(library, logging.ERROR, __file__, 1, text, (SECRET,), None)
    assert without_details(record)
    assert record.getMessage() == kept


def test_a_traceback_in_the_place_of_a_message_is_written_down_without_its_end() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        text = traceback.format_exc()
        record = logging.LogRecord("daphne.http_protocol", logging.ERROR, __file__, 1, text, (), None)
        assert without_details(record)
    line = ContentFreeFormatter("{message}", style="{").format(record)
    assert "builtins.ValueError" in line
    assert SECRET not in line
