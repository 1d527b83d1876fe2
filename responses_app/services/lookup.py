"""Find a response for its owner."""

from django.utils import timezone

from responses_app.errors import ResponseDeleted, ResponseNotFound
from responses_app.models import Response


def find_response(owner_id: int, response_id: str, *, must_be_stored: bool = True) -> Response:
    """The owner's response; somebody else's, and one that was not stored, does not exist."""
    visible = Response.objects.select_related("session").filter(owner_id=owner_id)
    if must_be_stored:
        visible = visible.filter(is_stored=True)
    row = visible.filter(pk=response_id).first()
    if row is None:
        raise ResponseNotFound(response_id)
    if row.deleted_at is not None:
        raise ResponseDeleted(response_id)
    return row


def touch(response_id: str) -> None:
    """Reading keeps a response from being evicted."""
    Response.objects.filter(pk=response_id).update(accessed_at=timezone.now())
