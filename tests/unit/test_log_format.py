"""Log lines: an exception is written down with its types and places, never with its message."""

import logging
import sys

from hermes_site.logs import ContentFreeFormatter, has_one_line

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


def test_the_parts_of_a_group_are_named() -> None:
    line = formatted(ExceptionGroup(SECRET, [ValueError(SECRET), TypeError(SECRET)]))
    assert "builtins.ValueError" in line
    assert "builtins.TypeError" in line
    assert SECRET not in line


def test_only_the_first_line_of_asyncio_is_kept() -> None:
    text = "Task exception was never retrieved\nfuture: <Task exception=%r>"
    args = (ValueError(SECRET),)
    record = logging.LogRecord("asyncio", logging.ERROR, __file__, 1, text, args, None)
    assert has_one_line(record)
    assert record.getMessage() == "Task exception was never retrieved"
