"""``/api/platforms/{platform}/events``: webhooks of messaging platforms."""

from functools import partial

from django.http import HttpResponse
from rest_framework.response import Response

from gateway_app.platforms.adapter import Adapter
from gateway_app.platforms.inbox import store_received
from gateway_app.platforms.registry import adapters
from responses_app.api.base import ApiRequest, ApiView
from responses_app.database import database
from responses_app.protocol.errors import ApiError


class PlatformNotFound(ApiError):
    status = 404
    code = "platform_not_found"

    def __init__(self, platform: str) -> None:
        super().__init__(f"No platform {platform!r} is enabled here.")


class PlatformEventsView(ApiView):
    authentication_classes = ()  # each platform has a signature or a token of its own
    permission_classes = ()

    def get(self, request: ApiRequest, platform: str) -> HttpResponse:
        """The platform checks the address."""
        challenge = _adapter(platform).challenge(request.stream.GET.dict())
        return HttpResponse(challenge, content_type="text/plain")

    def post(self, request: ApiRequest, platform: str) -> Response:
        """A 200 means that all of it is stored; anything else makes the platform repeat it."""
        adapter = _adapter(platform)
        received = adapter.read_webhook(request.stream.headers, request.stream.body)
        stored = database.submit(partial(store_received, adapter, received)).result()
        return Response({"object": "hermes.platform.events", "stored": stored})


def _adapter(platform: str) -> Adapter:
    adapter = adapters().get(platform)
    if adapter is None:
        raise PlatformNotFound(platform)
    return adapter
