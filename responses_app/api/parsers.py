from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from responses_app.protocol.errors import BodyTooLarge
from responses_app.requests.json_body import parse_object


class JSONObjectParser(BaseParser):
    """Read past Django's own limit, which is lower than ours and has no 413."""

    media_type = "*/*"  # some clients send JSON without its type

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        raw = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(raw) > settings.MAX_BODY_BYTES:
            raise BodyTooLarge(settings.MAX_BODY_BYTES)
        assert parser_context is not None
        if not raw and not parser_context["view"].is_body_required:
            return {}
        return parse_object(raw)
