"""Find a response for its owner."""

from datetime import timedelta

from django.utils import timezone

from responses_app.errors import ResponseDeleted, ResponseNotFound
from responses_app.eventlog import event_store
from responses_app.models import Response

ACCESS_STEP = timedelta(minutes=1)


def find_response(owner_id: int, response_id: str, *, must_be_stored: bool = True) -> Response:
    """The owner's response; somebody else's, and one that was not stored, does not exist."""
    visible = Response.objects.select_related("session").filter(owner_id=owner_id)
    if must_be_stored:
        visible = visible.filter(is_stored=True)
    row = visible.filter(pk=response_id).first() if response_id.isprintable() else None
    if row is None:
        raise ResponseNotFound(response_id)
    if row.deleted_at is not None:
        raise ResponseDeleted(response_id)
    return row


def note_access(row: Response) -> None:
    """Reading keeps a response from being evicted; a write per poll would cost more than the answer."""
    if row.accessed_at < timezone.now() - ACCESS_STEP:
        event_store.submit(lambda: Response.objects.filter(pk=row.pk).update(accessed_at=timezone.now()))
