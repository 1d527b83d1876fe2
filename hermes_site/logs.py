"""What is worth a line in the log, and what a line may hold."""

import logging
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from types import TracebackType

from django.db.utils import InterfaceError, OperationalError

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def is_news(record: logging.LogRecord) -> bool:
    """Database outages are logged elsewhere, rate-limited; drop the line and the traceback of each request."""
    raised = record.exc_info[1] if record.exc_info else None
    is_refusal = getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE
    return not (is_refusal or isinstance(raised, OperationalError | InterfaceError))


def has_one_line(record: logging.LogRecord) -> bool:
    """Cuts the message behind its first line."""
    record.msg, record.args = record.getMessage().partition("\n")[0], ()
    return True


class ContentFreeFormatter(logging.Formatter):
    """Tracebacks with types and places, and without messages.

    The message of an exception may quote a prompt, a row of the database or what an upstream sent.
    """

    def formatException(self, ei: ExcInfo) -> str:
        if ei[1] is None:
            return ""
        return "".join(_blamed(ei[1])).rstrip("\n")


def _blamed(error: BaseException) -> Iterator[str]:
    """The error behind what caused it, as Python prints them."""
    before = error.__cause__
    if before is None and not error.__suppress_context__:
        before = error.__context__
    if before is not None:
        yield from _blamed(before)
        yield "\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _blamed(part)
