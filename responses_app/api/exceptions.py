"""Errors of the views, in OpenAI's form."""

import logging
import sys
from typing import Any, NamedTuple

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from rest_framework import exceptions
from rest_framework.response import Response

from responses_app.eventlog.availability import OUTAGE_ERRORS, unavailable
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.protocol.errors import ApiError, InternalError, NotFound

HTML = "text/html"
OFFERED_TYPES = ("application/json", HTML)


class PageWords(NamedTuple):
    title: str
    advice: str = ""


DEFAULT_PAGE = PageWords("The request failed")
ERROR_PAGES = {
    404: PageWords("Not found"),
    500: PageWords("Something went wrong", "The log of the server has the error."),
    503: PageWords(
        "The database does not answer",
        "See that it runs, then load this page again. The log of the server has the reason, and "
        "manage.py doctor checks what the server needs.",
    ),
}

logger = logging.getLogger(__name__)
outage_log = ThrottledLog(logger, "Requests fail because the database is unavailable")


def openai_error(error: Exception, context: dict[str, Any]) -> Response:
    """REST framework's exception handler."""
    found = _as_api_error(error)
    if isinstance(found, InternalError):
        # Without the path: it may contain a client's names of sessions and conversations.
        method = context["request"].method
        view = type(context["view"]).__name__
        logger.error("%s %s failed", method, view, exc_info=error)
    return Response(found.body(), status=found.status, headers=found.headers)


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, OUTAGE_ERRORS):
        outage_log.error(error)
        return unavailable(error)
    if isinstance(error, SuspiciousOperation):
        return ApiError(str(error), code="bad_request")
    if isinstance(error, exceptions.MethodNotAllowed):
        return ApiError(str(error.detail), status=405, code="method_not_allowed")
    if isinstance(error, exceptions.APIException):
        return ApiError(str(error.detail), status=error.status_code, code=error.default_code)
    return InternalError()


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    error = NotFound(f"There is nothing at {request.method} {request.path}.", code="unknown_path")
    return _page_or_json(request, error)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django calls this while it handles the exception, and does not pass it on."""
    raised = sys.exc_info()[1]
    error: ApiError = InternalError()
    if isinstance(raised, OUTAGE_ERRORS):
        error = _as_api_error(raised)
    return _page_or_json(request, error)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page_or_json(request, ApiError("The request could not be read.", code="bad_request"))


def _page_or_json(request: HttpRequest, error: ApiError) -> HttpResponse:
    """A page for browsers, which name HTML first; OpenAI's form for everything else."""
    if request.get_preferred_type(OFFERED_TYPES) != HTML:
        return JsonResponse(error.body(), status=error.status, headers=error.headers)
    words = ERROR_PAGES.get(error.status, DEFAULT_PAGE)
    context = {"title": words.title, "message": error.message, "advice": words.advice}
    page = render_to_string("error.html", context)
    return HttpResponse(page, status=error.status, headers=error.headers)
