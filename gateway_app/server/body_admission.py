"""Decides whether a body is read: the key is checked as soon as the headers are complete."""

import logging
from dataclasses import dataclass
from urllib.parse import unquote

from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation

from responses_app.api.authentication import BearerAuthentication
from responses_app.database import database
from responses_app.http.cors import Headers
from responses_app.http.middleware import check_headers
from responses_app.http.principals import Principal, authenticate, is_root
from responses_app.http.request_gate import request_gate
from responses_app.protocol.errors import ApiError, InternalError, ServerShuttingDown
from responses_app.streaming.routing import api_view

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Head:
    """The method, target and headers of a request whose body has not been read."""

    method: bytes
    target: bytes
    headers: Headers

    @property
    def authorization(self) -> str | None:
        found = dict(self.headers).get(b"authorization")
        if found is None:
            return None
        return found.decode("latin-1")

    @property
    def is_trusted(self) -> bool:
        """Known without the database."""
        return settings.HERMES_AUTH == "off" or is_root(self.authorization)

    @property
    def needs_key(self) -> bool:
        """True for a path of the API; pages and unknown paths need no key."""
        if self.method == b"OPTIONS":
            return False
        path = unquote(self.target.partition(b"?")[0].decode("latin-1"))
        view = api_view(path)
        return BearerAuthentication in getattr(view, "authentication_classes", ())

    def refusal(self, error: ApiError) -> ApiError:
        """The error of the application, which checks the other headers before the key."""
        try:
            check_headers(self.headers)
        except ApiError as found:
            return found
        if request_gate.is_closed:
            return ServerShuttingDown()
        return error


def recent_principal(head: Head) -> Principal | None:
    """None where only the database knows."""
    if request_gate.is_closed:
        return None
    try:
        return authenticate(head.authorization)
    except (SynchronousOnlyOperation, ApiError):
        return None


async def check_key(head: Head) -> Principal | ApiError:
    if request_gate.is_closed:  # the database may be closed, too
        return ServerShuttingDown()
    try:
        return await database.read(authenticate, head.authorization)
    except ApiError as error:
        return error
    except Exception:
        logger.exception("A key could not be checked.")
        return InternalError()
