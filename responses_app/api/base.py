"""The base of every view: REST framework's own, with the types and the parser of this API."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.views import APIView

from responses_app.http.principals import Principal


class ApiRequest(Request):
    """``user`` owns what the request makes, ``auth`` is the key, ``data`` the JSON body."""

    user: User
    auth: Principal
    data: dict[str, Any]

    @property
    def stream(self) -> HttpRequest:
        """REST framework takes a body without a Content-Length, a chunked one, for an empty one."""
        return self._request


class ApiView(APIView):
    is_body_required = True  # False where every field of the body has a default

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> ApiRequest:
        return ApiRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )
