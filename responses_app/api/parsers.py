from typing import Any

from django.conf import settings
from rest_framework.request import Request

from responses_app.protocol.errors import BodyTooLarge
from responses_app.requests.json_body import parse_object


def read_body(request: Request, *, is_required: bool = True) -> dict[str, Any]:
    """Read past Django's own limit, which is lower than ours and knows no 413.

    No bytes at all stand for an empty object only where every field has a default.
    """
    raw = request._request.read(settings.MAX_BODY_BYTES + 1)
    if len(raw) > settings.MAX_BODY_BYTES:
        raise BodyTooLarge(settings.MAX_BODY_BYTES)
    if not raw and not is_required:
        return {}
    return parse_object(raw)
