"""What dead processes left: responses that have not ended and that nobody alive works on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime import processes
from gateway_app.runtime.resumption import read_spent
from responses_app.events import Event
from responses_app.models import Response
from responses_app.services.abandon import abandon


@dataclass(frozen=True)
class Orphan:
    response_id: str
    is_given_up: bool  # nobody may go on with it


def find_orphans(dead: list[str]) -> list[Orphan]:
    """Held by one of these, or by a lease that ran out."""
    held = Q(lease_owner__in=dead) | Q(lease_until__lt=timezone.now())
    rows = Response.objects.open().filter(held).order_by("created_at")
    # This death is one more than the row has counted so far.
    return [Orphan(row.pk, _is_given_up(row, row.crashes + 1)) for row in rows.only("pk", "crashes", "is_stored")]


def free(dead: list[str], orphans: list[Orphan]) -> None:
    """Whoever runs may take these now."""
    with transaction.atomic():
        processes.bury(dead)
        ids = [orphan.response_id for orphan in orphans]
        late = Response.objects.open().filter(pk__in=ids, lease_until__lt=timezone.now())
        owners = set(late.values_list("lease_owner", flat=True))
        Response.objects.filter(pk__in=ids).release(list(owners), is_crash=True)


def settle(orphan: Orphan) -> bool:
    with transaction.atomic():
        return abandon(orphan.response_id, _read_spent)


def _read_spent(events: Iterable[Event]) -> tuple[dict[str, Any] | None, list[str]]:
    usage, quirks = read_spent(events)
    return usage.as_spent(), quirks


def live_processes() -> int:
    return RuntimeProcess.objects.filter(state=ProcessState.RUNNING).count()


def _is_given_up(row: Response, crashes: int) -> bool:
    is_over = settings.HERMES_RECOVERY == "incomplete" or crashes >= settings.HERMES_MAX_ATTEMPTS
    return is_over or not row.is_stored
