"""Rows of messages that are over are kept for a while, to recognise repeats; dead letters stay."""

from datetime import timedelta
from functools import partial

from django.db.models.functions import Now

from responses_app.database import database
from responses_app.models import InboxMessage, InboxStatus, OutboxMessage, OutboxStatus

KEPT = timedelta(days=30)  # no platform repeats a message that late
FORGOTTEN_AT_ONCE = 500  # in one transaction: the writes of all streams wait for it


async def forget_old() -> bool:
    """True when there may be more."""
    return await database.write(partial(_forget, FORGOTTEN_AT_ONCE))


def _forget(limit: int) -> bool:
    inbox = InboxMessage.objects.filter(received_at__lt=Now() - KEPT, closed_at__isnull=False)
    outbox = OutboxMessage.objects.filter(created_at__lt=Now() - KEPT, closed_at__isnull=False)
    old_inbox = inbox.exclude(status=InboxStatus.FAILED).order_by("received_at")
    old_outbox = outbox.exclude(status=OutboxStatus.DEAD).order_by("created_at")
    received = list(old_inbox.values_list("pk", flat=True)[:limit])
    sent = list(old_outbox.values_list("pk", flat=True)[:limit])
    InboxMessage.objects.filter(pk__in=received).delete()
    OutboxMessage.objects.filter(pk__in=sent).delete()
    return limit in (len(received), len(sent))
