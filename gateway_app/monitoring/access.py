"""Who may watch: anybody on loopback, as in Hermes; elsewhere, and behind a proxy, a key or a staff login."""

from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from responses_app.principals import authenticate, is_root

FORWARDED_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


def check_watcher(request: HttpRequest) -> None:
    """Raises ``Unauthenticated`` for a stranger."""
    authorization = request.headers.get("Authorization")
    if _is_direct(request) or is_root(authorization):
        return  # known without the database
    if not (request.user.is_active and request.user.is_staff):
        authenticate(authorization)


def _is_direct(request: HttpRequest) -> bool:
    return settings.IS_PRIVATE and not any(name in request.headers for name in FORWARDED_HEADERS)


class Watcher(BaseAuthentication):
    is_authenticated = True

    def authenticate(self, request: Request) -> tuple["Watcher", None]:
        check_watcher(request._request)
        return self, None
