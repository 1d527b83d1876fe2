"""Renewal: one transaction keeps the leases of this process and stores its heartbeat."""

from dataclasses import dataclass

from gateway_app.runtime import processes
from gateway_app.runtime.heartbeat import Heartbeat
from responses_app.models import Response
from responses_app.services.lifecycle.claim import lease, process_id
from responses_app.services.lifecycle.survey import has_open_responses


@dataclass(frozen=True)
class Renewal:
    attempts: dict[str, int]  # of the responses that run here
    working: list[str]  # those that are claimed, run or end here
    is_draining: bool
    lag_ms: int


@dataclass(frozen=True)
class Renewed:
    held: dict[str, bool]  # for each response that is still held: whether to cancel it
    is_drain_requested: bool


def renew(heartbeat: Heartbeat, wanted: Renewal) -> Renewed:
    """In the writer."""
    beat = processes.beat(
        process_id(), len(wanted.attempts), is_draining=wanted.is_draining, lag_ms=wanted.lag_ms
    )
    if beat.was_late:  # before the commit: from then on, this process looks in time again
        heartbeat.wait_before_judging()
    held: dict[str, bool] = {}
    if has_open_responses():
        Response.objects.release_own(process_id(), wanted.working)
        held = Response.objects.renew(process_id(), wanted.attempts, lease())
    return Renewed(held, beat.is_drain_requested)
