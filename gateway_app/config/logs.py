"""The log: which records are written, and what a line may contain."""

import logging
import re
import sys
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from types import TracebackType
from typing import Any

from django.db.utils import InterfaceError, OperationalError

ABOUT_CODE = (AttributeError, ImportError, NameError)  # their messages name parts of the program
DETAILED_LIBRARIES = ("asyncio", "daphne")
# An exception, a task or a callback with its arguments follows one of these.
_DETAILS = re.compile(r"[\n:(]")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def is_news(record: logging.LogRecord) -> bool:
    """Database outages are logged elsewhere, rate-limited: drops the traceback of each request."""
    if getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE:
        return False
    if record.exc_info is None:
        return True
    return not isinstance(record.exc_info[1], OperationalError | InterfaceError)


def without_details(record: logging.LogRecord) -> bool:
    """Cuts the messages of libraries that print the exceptions and arguments of our code."""
    if record.name.partition(".")[0] in DETAILED_LIBRARIES:
        record.msg = _DETAILS.split(record.getMessage(), maxsplit=1)[0]
        record.args = ()
        if record.exc_info is None and sys.exc_info()[0] is not None:
            record.exc_info = sys.exc_info()  # the message contained the traceback
    return True


class ContentFreeFormatter(logging.Formatter):
    """Tracebacks with types and lines, but without most messages.

    The message of an exception may quote a prompt, a row of the database or an upstream's answer.
    """

    def formatException(self, ei: ExcInfo) -> str:
        if ei[1] is None:
            return ""
        return "".join(_traceback_lines(ei[1])).rstrip("\n")


def _traceback_lines(error: BaseException) -> Iterator[str]:
    """First the error's cause, then the error, as Python prints them."""
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None:
        yield from _traceback_lines(cause)
        yield "\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, ABOUT_CODE):
        yield f"{name}: {error}\n"
    else:
        yield f"{name}\n"
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _traceback_lines(part)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": ContentFreeFormatter,
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
    },
    "filters": {
        "news": {"()": "django.utils.log.CallbackFilter", "callback": is_news},
        "short": {"()": "django.utils.log.CallbackFilter", "callback": without_details},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["short"]},
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "gateway_app": {"level": "INFO"},
        "responses_app": {"level": "INFO"},
        # Django would write a line for every 4xx, which is the fault of its client.
        "django.request": {"level": "ERROR", "filters": ["news"]},
        # It logs a traceback for every line that is no message; our own code logs what matters.
        "mcp": {"level": "CRITICAL"},
        # It logs a traceback each second while Redis is away; our own code logs that once.
        "channels_redis": {"level": "CRITICAL"},
        # It logs each failed attempt to connect; outages are logged elsewhere, rate-limited.
        "psycopg.pool": {"level": "ERROR"},
    },
}
