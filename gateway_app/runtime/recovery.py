"""Recovers what dead processes left: responses that have not ended and that no process runs."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime import processes
from gateway_app.runtime.resumption import read_spent
from responses_app.models import Response
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item
from responses_app.services.lifecycle.failed_attempt import Spent, abandon, is_given_up


@dataclass(frozen=True)
class InterruptedResponse:
    response_id: str
    is_given_up: bool  # no process may go on with it


def find_dead() -> processes.Dead:
    """For commands, which are no process of the gateway and hold no work."""
    return processes.find_dead("", judges_silence=True)


def find_interrupted(dead: processes.Dead) -> list[InterruptedResponse]:
    """Held by one of these, or by a lease that ran out and whose owner is not known to live."""
    left = Response.objects.expired().exclude(lease_owner__in=processes.live())
    held = Q(lease_owner__in=dead.ids) | Q(pk__in=left.values("pk"))
    rows = Response.objects.open().filter(held).order_by("created_at")
    found = []
    for row in rows.only("pk", "crashes", "is_stored"):
        crashes = row.crashes + 1  # the row does not count this one yet
        response = InterruptedResponse(row.pk, is_given_up(crashes, is_stored=row.is_stored))
        found.append(response)
    return found


def free(dead: processes.Dead) -> None:
    """A running server may take what these hold."""
    with transaction.atomic():
        processes.mark_lost(dead)
        Response.objects.release_expired(processes.live())


def abandon_interrupted(interrupted: InterruptedResponse) -> bool:
    with transaction.atomic():
        return abandon(interrupted.response_id, _read_spent)


def _read_spent(events: Iterable[Event], output: list[Item]) -> Spent:
    usage, deviations = read_spent(events, output)
    return Spent(usage.as_spent(), usage.is_estimated, deviations)


def live_processes() -> int:
    return RuntimeProcess.objects.filter(state=ProcessState.RUNNING).count()
