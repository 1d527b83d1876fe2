"""A limit for failed logins: each costs a slow hash, and a password must not be guessed."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_login_failed
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
        name = request.POST.get("username", "")
        if not any(cache.get(key, 0) >= limit for key, limit in _counters(request, name)):
            return None
        return HttpResponse(
            "Too many failed logins. Try again in a minute.",
            status=429,
            content_type="text/plain",
            headers={"Retry-After": str(WINDOW_SECS)},
        )


@receiver(user_login_failed)
def _count(credentials: dict[str, Any], request: HttpRequest | None = None, **signal: Any) -> None:
    if request is None:
        return
    for key, _ in _counters(request, str(credentials.get("username", ""))):
        if not cache.add(key, 1, WINDOW_SECS):
            with suppress(ValueError):  # its minute has just ended
                cache.incr(key)


def _counters(request: HttpRequest, name: str) -> list[tuple[str, int]]:
    address = _address(request)
    by_name = f"login:{address}:{hash(name)}"
    return [(by_name, FAILURES_PER_NAME), (f"login:{address}", FAILURES_PER_ADDRESS)]


def _address(request: HttpRequest) -> str:
    """Behind a proxy all connections are the proxy's; the last entry is what it saw itself."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if settings.HERMES_PUBLIC_URL and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
