"""Frees the work of dead processes; a live one keeps its work even when its leases end."""

import logging
from functools import partial

from gateway_app.runtime import processes
from gateway_app.runtime.heartbeat import Heartbeat
from responses_app.database import database
from responses_app.models import Response
from responses_app.services.lifecycle.claim import has_expired, process_id

logger = logging.getLogger(__name__)


async def release_dead(heartbeat: Heartbeat) -> None:
    judges_silence = heartbeat.judges_silence
    find_dead = partial(processes.find_dead, process_id(), judges_silence=judges_silence)
    dead = await database.read(find_dead)
    if dead.ids or (judges_silence and await database.read(has_expired, processes.live())):
        await database.write(partial(_release, heartbeat, dead))


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
