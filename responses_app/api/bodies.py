from typing import Any

from django.conf import settings
from rest_framework.request import Request

from responses_app.errors import BodyTooLarge
from responses_app.requests.body import parse_object


def read_body(request: Request) -> dict[str, Any]:
    """Read past Django's own limit, which is lower than ours and knows no 413."""
    raw = request._request.read(settings.MAX_BODY_BYTES + 1)
    if len(raw) > settings.MAX_BODY_BYTES:
        raise BodyTooLarge(settings.MAX_BODY_BYTES)
    return parse_object(raw or b"{}")
