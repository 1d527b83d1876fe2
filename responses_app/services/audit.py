"""Who did what from a staff page: Django's own record, which the admin shows as a row's history."""

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db.models import Model


def record(actor: User | None, row: Model, told: str) -> None:
    """In the caller's transaction; clients act for themselves and leave no entry."""
    if actor is not None:
        LogEntry.objects.log_actions(actor.pk, [row], CHANGE, change_message=told, single_object=True)
