"""The metadata of a stored response, which its owner may replace."""

from functools import partial

from responses_app.database import database
from responses_app.models import Response
from responses_app.protocol.errors import ResponseNotFound


def replace_metadata(response_id: str, metadata: dict[str, str]) -> None:
    """In the stored request: the events of the log stay as they were sent."""
    database.submit(partial(_replace, response_id, metadata)).result()


def _replace(response_id: str, metadata: dict[str, str]) -> None:
    readable = Response.objects.filter(pk=response_id, deleted_at__isnull=True)
    request = readable.select_for_update().values_list("request", flat=True).first()
    if request is None:
        raise ResponseNotFound(response_id)
    readable.update(request=request | {"metadata": metadata})
