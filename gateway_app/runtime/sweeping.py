"""What a sweep finds: work that waits, and the processes that share it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_app.runtime import processes
from gateway_app.runtime.roles import Claims, Role
from gateway_app.runtime.stop_causes import StopCause
from gateway_app.runtime.turn import TurnRun
from gateway_app.runtime.workspaces import owners_elsewhere
from responses_app.database import database
from responses_app.models import Response
from responses_app.services.lifecycle.claim import claimable_ids, process_id
from responses_app.services.lifecycle.survey import Survey, survey


@dataclass(frozen=True)
class Found:
    survey: Survey
    has_others: bool
    workers: int  # live ones; counted only where other processes run
    peers: int  # live processes that claim the same turns, this one included


def look(claims: Claims) -> Found:
    has_others = processes.has_others(process_id())
    workers = 0
    peers = 1
    if has_others and claims.waits_for_workers:
        workers = processes.count_claimers(Role.WORKER)
    elif has_others:
        peers = max(1, processes.count_claimers(claims.role))
    return Found(survey(), has_others, workers, peers)


def claimable_share(
    free: int, full_owners: Sequence[int], peers: int, *, takes_stored: bool
) -> list[tuple[str, int]]:
    """This process's part of what waits: no process takes everything while others are idle."""
    left_out = [*full_owners, *owners_elsewhere()]
    found = claimable_ids(free * peers, left_out, is_any=takes_stored)
    part = math.ceil(len(found) / peers)
    return found[: min(part, free)]


async def stop_cancelled(runs: Mapping[str, TurnRun]) -> None:
    """Other processes take cancellations, too, and their hints may be lost."""
    for response_id in await database.read(cancelled_among, list(runs)):
        run = runs.get(response_id)
        if run is not None:  # it may have ended meanwhile
            run.stop(StopCause.CANCELLED)


def cancelled_among(response_ids: list[str]) -> list[str]:
    rows = Response.objects.filter(pk__in=response_ids, cancel_requested_at__isnull=False)
    return list(rows.values_list("pk", flat=True))


def accessed_since(since: datetime, response_ids: list[str]) -> set[str]:
    return set(Response.objects.accessed_since(since, response_ids))
