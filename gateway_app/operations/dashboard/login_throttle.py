"""A limit for failed logins: each costs a slow hash, and a password must not be guessed."""

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
FAILURES_PER_ADDRESS = 20  # with any names: a hash takes half a second of a core
LOGIN = "admin:login"


class LoginThrottle:
    """Refuses a login before its password is hashed; each process counts for itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if request.method != "POST" or match is None or match.view_name != LOGIN:
            return None
        # Counted before the hash: logins that come at the same time would all pass.
        is_over = [
            _count(key) > limit
            for key, limit in _counters(request, request.POST.get("username", ""))
        ]
        if not any(is_over):
            return None
        return HttpResponse(
            "Too many failed logins. Try again in a minute.",
            status=429,
            content_type="text/plain",
            headers={"Retry-After": str(WINDOW_SECS)},
        )


@receiver(user_logged_in)
def _forgive(user: Any, request: HttpRequest | None = None, **signal: Any) -> None:
    """A login that succeeds is no failure; those before it, with other names, still count."""
    if request is None:
        return
    (by_name, _), (by_address, _) = _counters(request, user.get_username())
    cache.delete(by_name)
    with suppress(ValueError):  # its minute has ended
        cache.decr(by_address)


def _count(key: str) -> int:
    cache.add(key, 0, WINDOW_SECS)
    try:
        return cache.incr(key)
    except ValueError:  # its minute has just ended
        return 1


def _counters(request: HttpRequest, name: str) -> list[tuple[str, int]]:
    address = _address(request)
    by_name = f"login:{address}:{hash(unicodedata.normalize('NFKC', name).strip())}"
    return [(by_name, FAILURES_PER_NAME), (f"login:{address}", FAILURES_PER_ADDRESS)]


def _address(request: HttpRequest) -> str:
    """Behind a proxy all connections are the proxy's; the last entry is what it saw itself."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if settings.HERMES_PUBLIC_URL and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
