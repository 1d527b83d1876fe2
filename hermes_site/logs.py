"""What is worth a line in the log."""

import logging

from django.db.utils import InterfaceError, OperationalError


def is_news(record: logging.LogRecord) -> bool:
    """A database that is away is told of once in a while, not with a traceback for every page that asks for it."""
    raised = record.exc_info[1] if record.exc_info else None
    return not isinstance(raised, OperationalError | InterfaceError)
