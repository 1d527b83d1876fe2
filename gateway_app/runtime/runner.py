"""The runner: claims responses, runs their turns, keeps their leases, sweeps for what was missed."""

import asyncio
import logging
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from gateway_app.runtime import processes
from gateway_app.runtime.heartbeat import Heartbeat
from gateway_app.runtime.lost_logs import end_lost_log
from gateway_app.runtime.slots import Slots
from gateway_app.runtime.turn import StopCause, TurnRun
from responses_app.database import database
from responses_app.eventlog import Segment
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.claim import (
    PROCESS_ID,
    Claimed,
    claim,
    claimable_ids,
    has_expired,
    lease,
    next_in_session,
)
from responses_app.services.lifecycle.failed_attempt import end_attempt
from responses_app.services.lifecycle.housekeeping import erase_some, tidy_next

logger = logging.getLogger(__name__)

RENEWALS_PER_LEASE = 5
TIDY_PER_SWEEP = 20
ERASURES_PER_SWEEP = 25  # of a few responses each
NO_OWNER = 0  # whose slots are asked for by none


class HeartbeatMissing(Exception):
    """Other processes take this one for dead: what it claims now would be taken from it."""


class Runner:
    def __init__(self) -> None:
        self.runs: dict[str, TurnRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = Slots(settings.HERMES_MAX_CONCURRENT)
        self.heartbeat = Heartbeat()
        self._is_closing = self._is_leaving = False

    # -- hints --------------------------------------------------------------------------
    def hint(self, response_id: str, owner_id: int) -> None:
        """There may be work on this response; without a free slot it waits for one."""
        if not self._is_closing and response_id not in self._tasks:
            self._slots.wait(response_id, owner_id)
            self._start_waiting()

    def _start_waiting(self) -> None:
        while self.heartbeat.is_fresh and (found := self._slots.next()) is not None:
            self._start(*found)

    def _start(self, response_id: str, owner_id: int) -> None:
        self._slots.forget(response_id, owner_id)
        self._slots.take(owner_id)
        task = asyncio.create_task(self._run(response_id, owner_id), name=response_id)
        self._tasks[response_id] = task
        task.add_done_callback(lambda _: self._ended(response_id, owner_id))

    def cancel(self, response_id: str) -> None:
        run = self.runs.get(response_id)
        if run is not None:
            run.stop(StopCause.CANCELLED)
        elif not self._is_closing and response_id not in self._tasks:
            self._start(response_id, NO_OWNER)  # settling what never ran takes no model and no time

    # -- the end ------------------------------------------------------------------------
    def close(self) -> None:
        """Nothing new is begun."""
        self._is_closing = True
        self._slots.clear()

    def leave(self) -> None:
        """What runs is left where it stands; its log tells the next process how to go on."""
        self._is_leaving = True
        for run in self.runs.values():
            run.stop(StopCause.SHUTDOWN)

    async def finished(self, timeout_secs: float) -> bool:
        if not self._tasks:
            return True
        _, left = await asyncio.wait(self._tasks.values(), timeout=timeout_secs)
        return not left

    # -- loops --------------------------------------------------------------------------
    async def sweep_forever(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(settings.HERMES_SWEEP_SECS)

    async def renew_forever(self) -> None:
        while True:
            await self.renew()
            await self.stop_unattended()
            await asyncio.sleep(settings.HERMES_LEASE_SECS / RENEWALS_PER_LEASE)

    # -- steps --------------------------------------------------------------------------
    async def sweep(self) -> None:
        """Free the leases of the dead, start what waits, tidy what has ended."""
        await self._release_dead()
        if self._is_closing:
            return
        if self._slots.free > 0:
            found = await database.read(claimable_ids, self._slots.free, self._slots.full_owners())
            for response_id, owner_id in found:
                self.hint(response_id, owner_id)
        for _ in range(ERASURES_PER_SWEEP):
            if not await erase_some():
                break
        for _ in range(TIDY_PER_SWEEP):
            if not await tidy_next():
                break

    async def _release_dead(self) -> None:
        """Free what the dead hold. Work is never taken from a process that lives, whatever its leases are."""
        me, judges_silence = PROCESS_ID, self.heartbeat.judges_silence
        dead = await database.read(lambda: processes.find_dead(me, judges_silence=judges_silence))
        if dead.ids or (judges_silence and await database.read(has_expired, processes.live())):
            await database.write(lambda: self._release(dead))

    def _release(self, dead: processes.Dead) -> None:
        """In the writer's thread, where it may have waited while the database was away."""
        judges_silence = self.heartbeat.judges_silence
        silent = dead.silent if judges_silence else []
        lost = processes.mark_lost(processes.Dead(dead.gone, silent))
        if lost:
            logger.warning("Found %d dead processes; their work is free.", lost)
        if judges_silence:
            Response.objects.release_expired(processes.live())

    async def renew(self) -> None:
        """Keep the leases; notice cancellations and losses that no hint told."""
        me, active = PROCESS_ID, len(self.runs)
        before, working, sent_at = dict(self.runs), list(self._tasks), time.monotonic()
        attempts = {response_id: run.row.attempt for response_id, run in before.items()}

        def renew_and_beat() -> dict[str, bool]:
            processes.beat(me, active)
            Response.objects.release_own(me, working)
            return Response.objects.renew(me, attempts, lease())

        held = await database.write(renew_and_beat)
        self.heartbeat.note(sent_at)
        self._start_waiting()
        for response_id, run in before.items():
            if self.runs.get(response_id) is not run:
                continue
            if response_id not in held:
                run.lose()
            elif held[response_id]:
                run.stop(StopCause.CANCELLED)

    async def stop_unattended(self) -> None:
        """End what nobody has read for too long, here or through another process."""
        limit_secs = 60 * settings.HERMES_UNATTENDED_MINUTES
        alone = {
            pk: run
            for pk, run in self.runs.items()
            if limit_secs and run.unattended_secs() > limit_secs
        }
        if not alone:
            return
        since = timezone.now() - timedelta(seconds=limit_secs)
        read = await database.read(lambda: set(Response.objects.accessed_since(since, list(alone))))
        for response_id, run in alone.items():
            if response_id not in read:
                run.stop(StopCause.UNATTENDED)

    async def _run(self, response_id: str, owner_id: int) -> None:
        try:
            claimed = await database.write(lambda: self._claim(response_id), self._register)
        except StorageUnavailable:
            return  # the sweep finds it when the database is back
        except HeartbeatMissing:
            self._slots.wait(response_id, owner_id)  # until the next heartbeat
            return
        if claimed is None:
            await end_lost_log(response_id)
            return
        await self._attempt(self.runs[response_id])
        following = await database.read_with_retry(next_in_session, claimed.row.session_id)
        if following is not None:
            self.hint(following, owner_id)

    async def _attempt(self, run: TurnRun) -> None:
        try:
            await run.run()
        except Exception:
            logger.exception("%s: attempt %d failed.", run.row.pk, run.row.attempt)
            await self._end_attempt(run.row)

    async def _end_attempt(self, row: Response) -> None:
        tail = event_store.tails.of(row.pk, is_volatile=not row.is_stored)
        in_memory = tail.whole() if tail.is_volatile else []

        def publish(end: Segment | None) -> None:
            if end is not None:
                event_store.publish_final(tail, end)

        await database.write_with_retry(lambda: end_attempt(row, in_memory), publish)

    def _claim(self, response_id: str) -> Claimed | None:
        """In the writer's thread, where it may have waited while the server began to stop, or the database was away."""
        if self._is_closing:
            return None
        if not self.heartbeat.is_fresh:
            raise HeartbeatMissing(response_id)
        return claim(response_id)

    def _register(self, claimed: Claimed | None) -> None:
        """On the event loop right after the commit, so that no cancellation finds a gap."""
        if claimed is not None:
            run = self.runs[claimed.row.pk] = TurnRun(claimed)
            if self._is_leaving:  # its claim was under way when the others were told
                run.stop(StopCause.SHUTDOWN)

    def _ended(self, response_id: str, owner_id: int) -> None:
        task = self._tasks.pop(response_id)
        self._slots.give_back(owner_id)
        self.runs.pop(response_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s: the runner failed.", response_id, exc_info=error)
        self._start_waiting()
