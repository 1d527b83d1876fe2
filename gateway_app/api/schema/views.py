"""The document, and a page that shows it.

Neither needs a key: they tell how this version is spoken to and nothing of what is stored, and a page can't send one.
"""

from django.http import HttpResponse
from django.shortcuts import render
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from gateway_app.api.schema.document import document


class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> JsonAnswer:
        return JsonAnswer(document())


class DocsView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return render(request._request, "openapi/docs.html")
