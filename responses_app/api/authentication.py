from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from responses_app.http.principals import Principal, authenticate


def principal_of(request: Request) -> Principal:
    principal: Any = request.user
    assert isinstance(principal, Principal)
    return principal


def owner_of(request: Request) -> int:
    return principal_of(request).owner_id


class BearerAuthentication(BaseAuthentication):
    """The API takes bearer keys and never cookies, so that no web page can use a visitor's login."""

    def authenticate(self, request: Request) -> tuple[Principal, None]:
        return authenticate(request.headers.get("Authorization")), None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
