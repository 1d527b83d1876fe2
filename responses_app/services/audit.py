"""The audit log: actions of staff and decisions about calls. The admin shows it as history."""

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model


def record(actor: User | None, row: Model, message: str) -> None:
    """In the caller's transaction. A client has no actor and leaves no entry."""
    if actor is not None:
        record_by(actor.pk, row, message)


def record_by(user_id: int, row: Model, message: str) -> None:
    """The entry names its row by key alone: it outlives a session, whose title is content."""
    LogEntry.objects.create(
        user_id=user_id,
        content_type=ContentType.objects.get_for_model(row, for_concrete_model=False),
        object_id=str(row.pk),
        object_repr=str(row.pk),
        action_flag=CHANGE,
        change_message=message,
    )
