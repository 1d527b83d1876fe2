"""A limit of failed logins: a password must not be guessed, and each attempt costs a slow hash."""

import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

WINDOW_SECS = 60
FAILURES_PER_NAME = 5  # from one address
FAILURES_PER_ADDRESS = 20  # with any names; a hash takes half a second of a core
LOGIN = "admin:login"


class LoginThrottle:
    """Refuses a login before its password is hashed. Each process has its own counters."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if request.method != "POST" or match is None or match.view_name != LOGIN:
            return None
        # Counted before the hash, or simultaneous logins would all pass.
        is_over = False
        for key, limit in _counters(request, request.POST.get("username", "")):
            is_over |= _count(key) > limit
        if not is_over:
            return None
        return HttpResponse(
            "Too many failed logins. Try again in a minute.",
            status=429,
            content_type="text/plain",
            headers={"Retry-After": str(WINDOW_SECS)},
        )


@receiver(user_logged_in)
def _uncount(user: Any, request: HttpRequest | None = None, **signal: Any) -> None:
    """A login that succeeds does not count. Earlier failures with other names still do."""
    if request is None:
        return
    (by_name, _), (by_address, _) = _counters(request, user.get_username())
    cache.delete(by_name)
    with suppress(ValueError):  # the counter has expired
        cache.decr(by_address)


def _count(key: str) -> int:
    cache.add(key, 0, WINDOW_SECS)
    try:
        return cache.incr(key)
    except ValueError:  # the counter has just expired
        return 1


def _counters(request: HttpRequest, name: str) -> list[tuple[str, int]]:
    address = _address(request)
    by_name = f"login:{address}:{hash(unicodedata.normalize('NFKC', name).strip())}"
    return [(by_name, FAILURES_PER_NAME), (f"login:{address}", FAILURES_PER_ADDRESS)]


def _address(request: HttpRequest) -> str:
    """Behind a proxy all connections come from the proxy; it appends the address that it saw."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if settings.HERMES_PUBLIC_URL and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
