"""``/health``: whether the process answers at all."""

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView


class HealthView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> JsonAnswer:
        status = "degraded" if settings.HERMES_DEGRADED else "ok"
        return JsonAnswer(
            {"status": status, "platform": "hermes-agent", "version": settings.HERMES_VERSION}
        )
