"""The runner: claims responses, runs their turns, keeps their leases, sweeps for missed work."""

import asyncio
import logging
import time
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.utils import timezone

from gateway_app.runtime import processes
from gateway_app.runtime.heartbeat import Heartbeat
from gateway_app.runtime.lost_logs import end_lost_log
from gateway_app.runtime.pins import pins
from gateway_app.runtime.release import release_dead
from gateway_app.runtime.renewal import Renewal, renew
from gateway_app.runtime.roles import Claims, Role
from gateway_app.runtime.shared_secrets import secrets_digest
from gateway_app.runtime.shared_settings import settings_digest
from gateway_app.runtime.slots import Slots
from gateway_app.runtime.stop_causes import StopCause
from gateway_app.runtime.sweeping import accessed_since, claimable_share, look, stop_cancelled
from gateway_app.runtime.turn import TurnRun
from responses_app.database import database
from responses_app.eventlog import Segment
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.claim import Claimed, claim, process_id
from responses_app.services.lifecycle.failed_attempt import end_attempt
from responses_app.services.lifecycle.housekeeping import erase_some, tidy_some

logger = logging.getLogger(__name__)

RENEWALS_PER_LEASE = 5
TIDY_PER_SWEEP = 20  # of some logs each
ERASURES_PER_SWEEP = 25  # of a few responses each
NO_OWNER = 0  # for work that counts towards no owner's slots


class HeartbeatMissing(Exception):
    """Other processes take this one for dead, and would take from it what it claims now."""


class Runner:
    def __init__(self, role: str = Role.WEB) -> None:
        self.claims = Claims(role)
        self.runs: dict[str, TurnRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = Slots(settings.HERMES_MAX_CONCURRENT)
        self.heartbeat = Heartbeat()
        self.pass_on = self.hint  # for the next turn of a session, which another process may claim
        self.is_drain_requested = False
        self._slot_freed = asyncio.Event()
        self._is_closing = False  # nothing new is claimed
        self._is_interrupted = False  # what still runs was stopped for the shutdown

    async def register(self) -> None:
        """Make this process known to the others."""
        sent_at = time.monotonic()
        digests = (secrets_digest(), settings_digest())
        await database.write(partial(processes.register, process_id(), self.claims.role, *digests))
        self.heartbeat.note(sent_at)

    # -- turns that are claimed as they are admitted ------------------------------------
    def reserve(self, owner_id: int) -> bool:
        """Take a slot for a turn that is about to be admitted; not before those that wait."""
        if not self.may_claim or self._slots.has_waiting or not self._slots.may_start(owner_id):
            return False
        self._slots.take(owner_id)
        return True

    @property
    def may_claim(self) -> bool:
        """Other processes take a process without a fresh heartbeat for dead."""
        return not self._is_closing and self.heartbeat.is_fresh

    def give_back(self, owner_id: int) -> None:
        self._slots.give_back(owner_id)
        self._start_waiting()

    def start_claimed(self, claimed: Claimed) -> None:
        """A turn whose slot is taken."""
        self._register(claimed)
        self._begin(claimed.row.pk, claimed.row.owner_id)

    # -- hints --------------------------------------------------------------------------
    def hint(self, response_id: str, owner_id: int) -> None:
        """There may be work on this response; without a free slot it waits for one."""
        if not self._is_closing and response_id not in self._tasks:
            self._slots.wait(response_id, owner_id)
            self._start_waiting()

    async def wait_for_slot(self) -> None:
        """Until this process could start one more turn."""
        while self._is_closing or self._slots.free <= 0 or self._slots.has_waiting:
            self._slot_freed.clear()
            await self._slot_freed.wait()

    def _start_waiting(self) -> None:
        self._slot_freed.set()
        while self.heartbeat.is_fresh:
            found = self._slots.next()
            if found is None:
                return
            response_id, owner_id = found
            self._start(response_id, owner_id)

    def _start(self, response_id: str, owner_id: int) -> None:
        self._slots.forget(response_id, owner_id)
        if response_id not in self._tasks:  # a cancellation may have started it while it waited
            self._slots.take(owner_id)
            self._begin(response_id, owner_id)

    def _begin(self, response_id: str, owner_id: int) -> None:
        task = asyncio.create_task(self._run(response_id, owner_id), name=response_id)
        self._tasks[response_id] = task
        task.add_done_callback(partial(self._ended, response_id, owner_id))

    def cancel(self, response_id: str) -> None:
        run = self.runs.get(response_id)
        if run is not None:
            run.stop(StopCause.CANCELLED)
        elif not self._is_closing and response_id not in self._tasks:
            self._start(response_id, NO_OWNER)  # a response that never ran is settled at once

    # -- the end ------------------------------------------------------------------------
    def close(self) -> None:
        """Claim nothing more."""
        self._is_closing = True
        self._slots.clear()

    def interrupt(self) -> None:
        """Stop what still runs; the next process goes on from the logs."""
        self._is_interrupted = True
        for run in self.runs.values():
            run.stop(StopCause.SHUTDOWN)

    async def wait_until_idle(self, timeout_secs: float) -> bool:
        """False when some turns still run after this time."""
        if not self._tasks:
            return True
        _, unfinished = await asyncio.wait(self._tasks.values(), timeout=timeout_secs)
        return not unfinished

    async def retire(self) -> None:
        """Give the leases back. A crashed process can't: another one has to find it gone first."""
        await database.write(partial(processes.retire, process_id()))

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
        found = await database.read(look, self.claims)
        self.claims.note_workers(found.workers)
        if found.survey.has_open or found.has_others:
            await release_dead(self.heartbeat)
        if self.runs and found.has_others:
            await stop_cancelled(self.runs)
        if found.survey.has_open:
            await self._start_found(found.peers)
        if found.survey.is_untidy:
            await self._tidy()

    async def _start_found(self, peers: int) -> None:
        free = self._slots.free
        if self._is_closing or free <= 0:
            return
        full_owners = self._slots.full_owners()
        takes_stored = self.claims.takes_stored
        share = partial(claimable_share, free, full_owners, peers, takes_stored=takes_stored)
        for response_id, owner_id in await database.read(share):
            self.hint(response_id, owner_id)

    async def _tidy(self) -> None:
        if self._is_closing:
            return
        for _ in range(ERASURES_PER_SWEEP):
            if not await erase_some():
                break
        for _ in range(TIDY_PER_SWEEP):
            if not await tidy_some():
                break

    async def renew(self) -> None:
        """Keep the leases; notice cancellations and losses whose hints were lost."""
        before = dict(self.runs)
        wanted = Renewal(
            attempts={response_id: run.row.attempt for response_id, run in before.items()},
            working=list(self._tasks),
            is_draining=self._is_closing,
            lag_ms=round(1000 * database.writer.lag_secs),
        )
        sent_at = time.monotonic()
        renewed = await database.write(partial(renew, self.heartbeat, wanted))
        self.is_drain_requested = renewed.is_drain_requested
        held = renewed.held
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
        """End what no client has read for too long, here or through another process."""
        limit_secs = 60 * settings.HERMES_UNATTENDED_MINUTES
        if not limit_secs:
            return
        unread = {pk: run for pk, run in self.runs.items() if run.unattended_secs() > limit_secs}
        if not unread:
            return
        since = timezone.now() - timedelta(seconds=limit_secs)
        accessed = await database.read(accessed_since, since, list(unread))
        for response_id, run in unread.items():
            if response_id not in accessed:
                run.stop(StopCause.UNATTENDED)

    async def _run(self, response_id: str, owner_id: int) -> None:
        run = self.runs.get(response_id)  # one that was claimed as it was admitted
        if run is None:
            run = await self._claimed_run(response_id, owner_id)
        if run is None:
            return
        await self._attempt(run)
        following = await run.next_turn()
        if following is not None:
            self.pass_on(following, owner_id)

    async def _claimed_run(self, response_id: str, owner_id: int) -> TurnRun | None:
        step = partial(self._claim, response_id, owner_id)
        try:
            claimed = await database.write(step, self._register)
        except StorageUnavailable:
            return None  # the sweep finds it when the database is available
        if claimed is None:
            await end_lost_log(response_id)
            return None
        return self.runs[response_id]

    async def _attempt(self, run: TurnRun) -> None:
        try:
            await run.run()
        except Exception:
            logger.exception("%s: attempt %d failed.", run.row.pk, run.row.attempt)
            await self._end_attempt(run.row)

    async def _end_attempt(self, row: Response) -> None:
        tail = event_store.tails.of(row.pk, is_volatile=not row.is_stored)
        in_memory: list[Segment] = []
        if tail.is_volatile:
            in_memory = tail.whole()

        def publish(end: Segment | None) -> None:
            if end is not None:
                event_store.publish_final(tail, end)

        await database.write_with_retry(partial(end_attempt, row, in_memory), publish)

    def _claim(self, response_id: str, owner_id: int) -> Claimed | None:
        """In the writer's thread, where it may have waited long for the database."""
        if self._is_closing or pins.leaves(response_id, owner_id):
            return None
        if not self.heartbeat.is_fresh:
            raise HeartbeatMissing(response_id)
        return claim(response_id)

    def _register(self, claimed: Claimed | None) -> None:
        """On the event loop right after the commit: a cancellation must find the run."""
        if claimed is not None:
            run = self.runs[claimed.row.pk] = TurnRun(claimed)
            if self._is_interrupted:  # the claim was under way when the others were stopped
                run.stop(StopCause.SHUTDOWN)

    def _ended(self, response_id: str, owner_id: int, task: asyncio.Task[None]) -> None:
        del self._tasks[response_id]
        self._slots.give_back(owner_id)
        self.runs.pop(response_id, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HeartbeatMissing):
            self._slots.wait(response_id, owner_id)  # until the next heartbeat
        elif error is not None:
            logger.error("%s: the runner failed.", response_id, exc_info=error)
        self._start_waiting()
