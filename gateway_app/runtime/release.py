"""Frees the work of dead processes; a live one keeps its work even when its leases end."""

import logging
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any

from django.db.models import QuerySet

from gateway_app.runtime import processes
from gateway_app.runtime.heartbeat import Heartbeat
from responses_app.database import database
from responses_app.models import Response
from responses_app.models.compiled import CompiledQuery
from responses_app.services.lifecycle.claim import lease, process_id

logger = logging.getLogger(__name__)


async def release_dead(heartbeat: Heartbeat) -> None:
    dead, is_due = await database.read(_look, heartbeat.judges_silence)
    if is_due:
        await database.write(partial(_release, heartbeat, dead))


def _look(judges_silence: bool) -> tuple[processes.Dead, bool]:
    """The dead, and whether there is work to free."""
    dead = processes.find_dead(process_id(), judges_silence=judges_silence)
    is_due = bool(dead.ids) or (judges_silence and _has_expired())
    return dead, is_due


def _has_expired() -> bool:
    """Whether a lease ran out whose owner is none of the live processes."""
    return _first_expired(lease()).first() is not None


@lru_cache(maxsize=8)
def _first_expired(lease: timedelta) -> CompiledQuery:
    """Each process asks this once a second."""

    def expired() -> QuerySet[Response, Any]:
        of_the_dead = Response.objects.expired().exclude(lease_owner__in=processes.live())
        return of_the_dead.values_list("pk")[:1]

    return CompiledQuery(expired)


def _release(heartbeat: Heartbeat, dead: processes.Dead) -> None:
    """In the writer's thread, where it may have waited while the database was unavailable."""
    judges_silence = heartbeat.judges_silence and not processes.is_late(process_id())
    if not judges_silence:
        dead = processes.Dead(dead.gone, silent=[])
    lost = processes.mark_lost(dead)
    if lost:
        logger.warning("Found %d dead processes; their work is free.", lost)
    if judges_silence:
        Response.objects.release_expired(processes.live())
