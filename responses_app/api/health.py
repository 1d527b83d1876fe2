"""``/health``: whether the process answers at all."""

from django.conf import settings
from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView


class HealthView(ApiView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: ApiRequest) -> Response:
        status = "degraded" if settings.HERMES_DEGRADED else "ok"
        return Response(
            {"status": status, "platform": "hermes-agent", "version": settings.HERMES_VERSION}
        )
