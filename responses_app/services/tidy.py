"""Tidy: what is done with a log once its response has ended."""

from datetime import timedelta

from django.utils import timezone

from responses_app.eventlog import event_store
from responses_app.eventlog.segments import merge, read_whole, replace_with_merged
from responses_app.models import Response
from responses_app.services.delete import erase
from responses_app.services.idempotency import forget_expired, has_expired
from responses_app.states import TERMINAL

TIDY_AFTER = timedelta(seconds=5)  # readers in other processes may still follow the live log


async def tidy_next() -> bool:
    """Merge or erase one log, or forget old requests; False when there is nothing to do."""
    row = await event_store.read(_next_untidy)
    if row is None:
        is_due = await event_store.read(has_expired)
        if is_due:
            await event_store.write(forget_expired)
        return is_due
    if row.deleted_at is not None:
        await event_store.write(lambda: erase(row.pk))
        return True
    merged = await event_store.read(lambda: merge(read_whole(row.pk)))
    await event_store.write(lambda: replace_with_merged(row.pk, merged))
    return True


def _next_untidy() -> Response | None:
    ended = Response.objects.filter(is_log_merged=False, finished_at__lt=timezone.now() - TIDY_AFTER)
    return ended.filter(status__in=TERMINAL).only("pk", "deleted_at").order_by("finished_at").first()
