from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from responses_app.http.principals import Principal, authenticate


class BearerAuthentication(BaseAuthentication):
    """Bearer keys and never cookies: no web page can use a visitor's login for the API."""

    def authenticate(self, request: Request) -> tuple[User, Principal]:
        principal = authenticate(request.headers.get("Authorization"))
        return principal.user, principal

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
