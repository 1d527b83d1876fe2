"""What is worth a line in the log."""

import logging
from http import HTTPStatus

from django.db.utils import InterfaceError, OperationalError


def is_news(record: logging.LogRecord) -> bool:
    """Database outages are logged elsewhere, rate-limited; drop the line and the traceback of each request."""
    raised = record.exc_info[1] if record.exc_info else None
    is_refusal = getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE
    return not (is_refusal or isinstance(raised, OperationalError | InterfaceError))
