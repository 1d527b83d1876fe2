"""Access to monitoring: the root key and staff read all, other keys all but the names of owners.

A direct connection on loopback reads the public part.
"""

from dataclasses import dataclass
from enum import Enum

from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from responses_app.http.principals import authenticate, is_root
from responses_app.protocol.errors import Unauthenticated

VIEW_PERMISSION = "responses_app.view_response"
PROXY_HEADERS = ("Via", "Forwarded", "X-Real-IP")
PROXY_PREFIX = "x-forwarded-"


class Access(Enum):
    ALL = "all"
    KEY = "key"  # all but the names of other owners
    PUBLIC = "public"


def access_of(request: HttpRequest) -> Access:
    """Raises ``Unauthenticated`` for a caller that may read nothing."""
    authorization = request.headers.get("Authorization")
    if is_root(authorization):
        return Access.ALL  # decided without the database
    is_direct = _is_direct(request)
    if is_direct and settings.HERMES_OPEN_MONITORING:
        return Access.ALL
    user = request.user
    if user.is_active and user.is_staff and user.has_perm(VIEW_PERMISSION):
        return Access.ALL
    if _has_key(authorization):
        return Access.KEY
    if not is_direct:
        raise no_key()
    return Access.PUBLIC


def no_key() -> Unauthenticated:
    return Unauthenticated("Send your key as 'Authorization: Bearer <key>'.")


def _has_key(authorization: str | None) -> bool:
    """A wrong key raises. With HERMES_AUTH=off a caller without a key has no authority."""
    return authorization is not None and authenticate(authorization).authority is not None


def _is_direct(request: HttpRequest) -> bool:
    """A proxy makes every client look like loopback, and adds at least one of these headers."""
    if not settings.IS_PRIVATE:
        return False
    if any(name in request.headers for name in PROXY_HEADERS):
        return False
    return not any(name.lower().startswith(PROXY_PREFIX) for name in request.headers)


@dataclass(frozen=True)
class Watcher:
    access: Access
    is_authenticated: bool = True  # REST framework's IsAuthenticated reads it


class WatcherAuthentication(BaseAuthentication):
    """While REST framework authenticates, the Django request still has the user of the cookie."""

    def authenticate(self, request: Request) -> tuple[Watcher, None]:
        return Watcher(access_of(request._request)), None
