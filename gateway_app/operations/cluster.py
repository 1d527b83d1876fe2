"""The cluster: all processes on this database, as one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Min, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from gateway_app.models import ProcessState
from gateway_app.operations.health_checks import check
from gateway_app.runtime.roles import Role
from responses_app.http.request_gate import request_gate
from responses_app.models import Response, is_held, is_parked

if TYPE_CHECKING:
    from gateway_app.operations.health import Process

SHOWN_OWNERS = 20


@dataclass(frozen=True)
class OwnerQueue:
    owner: str
    queued: int
    oldest_secs: float


@dataclass(frozen=True)
class Waiting:
    """What the database knows of turns that no process runs."""

    by_owner: list[OwnerQueue]  # the longest queues first
    expired_leases: int


@dataclass(frozen=True)
class Cluster:
    roles: dict[str, int]  # live processes of each
    versions: list[str]
    leases_held: int
    leases_expired: int
    lag_ms: int  # of the slowest writer
    queue_by_owner: list[OwnerQueue]


def read_waiting() -> Waiting:
    waiting = Response.objects.open().exclude(is_held()).exclude(is_parked())
    # An expression: SQLite would read the whole index of owners to group by the column.
    grouped = waiting.order_by().values(owner_key=Coalesce("owner_id", Value(0)))
    counted = grouped.annotate(queued=Count("pk"), oldest=Min("created_at")).order_by("-queued")
    found = list(counted.values_list("owner_key", "queued", "oldest")[:SHOWN_OWNERS])
    names = User.objects.in_bulk([owner_id for owner_id, _, _ in found])
    now = timezone.now()
    by_owner: list[OwnerQueue] = []
    for owner_id, queued, oldest in found:
        if owner_id in names:  # not erased meanwhile
            name = names[owner_id].username
            by_owner.append(OwnerQueue(name, queued, _age_secs(oldest, now)))
    return Waiting(by_owner, Response.objects.expired().count())


def summarise(processes: Sequence["Process"], waiting: Waiting) -> Cluster:
    live = [process for process in processes if process.is_live]
    versions = {process.version for process in live if process.version}
    roles = Counter(process.role for process in live)
    return Cluster(
        roles=dict(sorted(roles.items())),
        versions=sorted(versions),
        leases_held=sum(process.active_responses for process in live),
        leases_expired=waiting.expired_leases,
        lag_ms=max((process.lag_ms for process in live), default=0),
        queue_by_owner=waiting.by_owner,
    )


def _age_secs(since: datetime, now: datetime) -> float:
    return max(0.0, round((now - since).total_seconds(), 3))  # the clocks of hosts differ


def workers_check(found: "list[Process] | None") -> dict[str, Any]:
    """With HERMES_DISPATCH=workers, a web process runs turns itself only where no worker lives."""
    live = 0
    draining = 0
    for process in found or []:
        if process.role == Role.WORKER and process.is_live:
            live += 1
            draining += process.is_draining
    is_ok = settings.HERMES_DISPATCH != "workers" or live > draining
    return check(is_ok, dispatch=settings.HERMES_DISPATCH, live=live, draining=draining)


def secrets_check(found: "list[Process] | None") -> dict[str, Any]:
    live = [process for process in found or [] if process.is_live]
    disagreeing = [process.id for process in live if process.has_other_secrets]
    return check(not disagreeing, disagreeing=disagreeing)


def gateway_check(found: "list[Process] | None") -> dict[str, Any]:
    running = 0
    silent = 0
    for process in found or []:
        if process.is_gateway and process.state == ProcessState.RUNNING:
            running += 1
            silent += process.is_silent
    is_ready = running > silent and not request_gate.is_closed
    return check(is_ready, running=running, silent=silent, draining=request_gate.is_closed)
