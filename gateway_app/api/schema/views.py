"""The document, and a page that shows it.

Neither needs a key: they describe the API and nothing that is stored, and a browser's request for a
page has no key.
"""

from django.http import HttpResponse
from django.shortcuts import render
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> Response:
        # Its parts take memory that most servers never need.
        from gateway_app.api.schema.document import document

        return Response(document())


class DocsView(APIView):
    authentication_classes = (SessionAuthentication,)  # for the header of the page
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return render(request._request, "openapi/docs.html")
