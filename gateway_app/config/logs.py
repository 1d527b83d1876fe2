"""What is worth a line in the log, and what a line may hold."""

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
_DETAILS = re.compile(
    r"[\n:(]"
)  # what follows is an exception, a task or a callback with its arguments

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def is_news(record: logging.LogRecord) -> bool:
    """Database outages are logged elsewhere, rate-limited; drop the line and the traceback of each request."""
    raised = record.exc_info[1] if record.exc_info else None
    is_refusal = getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE
    return not (is_refusal or isinstance(raised, OperationalError | InterfaceError))


def without_details(record: logging.LogRecord) -> bool:
    """Cuts the messages of libraries that print the exceptions and arguments of our own code."""
    if record.name.partition(".")[0] in DETAILED_LIBRARIES:
        record.msg, record.args = _DETAILS.split(record.getMessage(), maxsplit=1)[0], ()
        if record.exc_info is None and sys.exc_info()[0] is not None:
            record.exc_info = sys.exc_info()  # its message was the traceback
    return True


class ContentFreeFormatter(logging.Formatter):
    """Tracebacks with types and places, and hardly any messages.

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
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    yield f"{name}: {error}\n" if isinstance(error, ABOUT_CODE) else f"{name}\n"
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _blamed(part)


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
        "brief": {"()": "django.utils.log.CallbackFilter", "callback": without_details},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["brief"]},
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "gateway_app": {"level": "INFO"},
        "responses_app": {"level": "INFO"},
        # Each 4xx is the client's business; Django would write a line for every one.
        "django.request": {"level": "ERROR", "filters": ["news"]},
        # A traceback for every line a server prints by mistake; gateway_app.tools.mcp says what matters.
        "mcp": {"level": "CRITICAL"},
        # A line for each failed attempt; a request that failed for it is logged once in a while.
        "psycopg.pool": {"level": "ERROR"},
    },
}
