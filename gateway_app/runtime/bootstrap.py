"""Starts the work of this process on the server's own event loop, once."""

import asyncio
import atexit
import contextvars
import logging
import os
import signal
from collections.abc import Coroutine
from functools import partial
from typing import Any

from django.conf import settings

from gateway_app.providers.registry import get_providers
from gateway_app.runtime import processes
from gateway_app.runtime.dispatch import InProcessDispatcher
from gateway_app.runtime.hint_exchange import follow_hints, send_hints
from gateway_app.runtime.mcp import stop_toolset
from gateway_app.runtime.memory import limit_heaps, spare_collections
from gateway_app.runtime.process_loops import loops_of, unavailable_log, until_it_works
from gateway_app.runtime.roles import Role, web_role
from gateway_app.runtime.runner import Runner
from gateway_app.runtime.shared_secrets import exit_if_disagreeing
from gateway_app.runtime.signals import end_children, exit_after
from gateway_app.tools.terminal import NO_SANDBOX, NO_SANDBOX_REMEDY, lacks_sandbox
from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog.store import event_store
from responses_app.http.request_gate import request_gate
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.claim import process_id

logger = logging.getLogger(__name__)

DRAIN_SECS = 3600.0  # for the turns of a process that an operator takes out
# The steps behind the grace; together they take at most EXIT_SECS.
STOP_SECS = 0.5  # the turns stop, the leases are given back
LAST_WRITES_SECS = 0.2
READERS_SECS = 0.4  # the streams of readers end
EXIT_SECS = 1.7


class Runtime:
    """The runner and the loops around it; strong references keep its tasks alive."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._draining: asyncio.Task[None] | None = None
        self.runner: Runner | None = None
        self._least_grace_secs = 0.0

    def ensure_started(self, role: Role | None = None) -> None:
        """Idempotent: a start hook, lifespan or the first request calls it."""
        if self.runner is not None:
            return
        loop = asyncio.get_running_loop()
        limit_heaps()
        database.writer.start(loop)
        atexit.register(end_children)  # some servers end without a shutdown event
        self.runner = Runner(role or web_role())
        self._spawn(self._run(self.runner))
        if settings.REDIS_URL:
            event_store.share()
            self._spawn(until_it_works("send_hints", send_hints))
            self._spawn(until_it_works("follow_hints", partial(follow_hints, self.runner)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A fresh context: the context variables of the first request must not live on here.
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(work, context=contextvars.Context()))

    async def _run(self, runner: Runner) -> None:
        await until_it_works("register", runner.register)
        await until_it_works("secrets", exit_if_disagreeing)
        # The first import of a provider takes most of a second.
        await asyncio.to_thread(get_providers, settings.HERMES_MODELS)
        await asyncio.to_thread(_look_for_sandbox)
        spare_collections()
        dispatcher = get_dispatcher()
        if isinstance(dispatcher, InProcessDispatcher):
            dispatcher.runner = runner
        if runner.claims.waits_for_workers:
            runner.pass_on = dispatcher.generate
        self._spawn(self._leave_when_asked(runner))
        async with asyncio.TaskGroup() as loops:  # ends after all of its tasks, unlike gather
            for name, step in loops_of(runner).items():
                loops.create_task(until_it_works(name, step))

    async def _leave_when_asked(self, runner: Runner) -> None:
        """``manage.py drain`` is a first signal with more time; a second signal still exits."""
        while not runner.is_drain_requested:  # noqa: ASYNC110 - set by the next heartbeat
            await asyncio.sleep(settings.HERMES_SWEEP_SECS)
        logger.info("An operator drains this process.")
        self._least_grace_secs = DRAIN_SECS
        os.kill(os.getpid(), signal.SIGTERM)

    # -- the end ------------------------------------------------------------------------
    def begin_drain(self) -> None:
        if self._draining is None:
            loop = asyncio.get_running_loop()
            self._draining = loop.create_task(self._drain(), context=contextvars.Context())

    async def drain(self) -> None:
        """Finish what fits into the grace; leave the rest to the next start and end its streams."""
        self.begin_drain()
        assert self._draining is not None
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        request_gate.close()
        grace = max(settings.HERMES_SHUTDOWN_GRACE, self._least_grace_secs)
        deadline = asyncio.get_running_loop().time() + grace
        exit_after(grace + EXIT_SECS)
        if self.runner is not None:
            database.submit(partial(processes.note_draining, process_id()))
            count = len(self.runner.runs)
            logger.info("Shutting down; %d running responses have %g s.", count, grace)
            await self._end_work(self.runner, grace)
        if settings.REDIS_URL:  # other processes may finish within the grace what clients read here
            await request_gate.wait_until_idle(deadline - asyncio.get_running_loop().time())
        await asyncio.gather(self._retire(deadline), _dismiss_readers(deadline))
        await event_store.watcher.close(LAST_WRITES_SECS)
        await asyncio.to_thread(database.writer.stop)

    async def _end_work(self, runner: Runner, grace: float) -> None:
        runner.close()
        await runner.wait_until_idle(grace)
        runner.interrupt()
        await asyncio.wait({asyncio.ensure_future(stop_toolset())}, timeout=STOP_SECS)
        await runner.wait_until_idle(STOP_SECS)
        end_children()
        await runner.wait_until_idle(LAST_WRITES_SECS)

    async def _retire(self, deadline: float) -> None:
        """A message that is on its way to a platform may use up the grace."""
        if self.runner is None:
            return
        for task in self._tasks:
            task.cancel()
        retiring = asyncio.ensure_future(_retire(self.runner))
        rest = deadline - asyncio.get_running_loop().time()
        await asyncio.wait([retiring, *self._tasks], timeout=max(rest, STOP_SECS))


def _look_for_sandbox() -> None:
    """Before the first turn, as it runs a program."""
    if lacks_sandbox(settings.HERMES_TERMINAL):
        logger.warning("The terminal is not offered: %s. Remedy: %s", NO_SANDBOX, NO_SANDBOX_REMEDY)


async def _dismiss_readers(deadline: float) -> None:
    event_store.dismiss_readers()
    rest = deadline - asyncio.get_running_loop().time()
    if not await request_gate.wait_until_idle(max(rest, READERS_SECS)):
        request_gate.cancel_running()
        await request_gate.wait_until_idle(LAST_WRITES_SECS)


async def _retire(runner: Runner) -> None:
    try:
        await runner.retire()
    except StorageUnavailable as error:
        unavailable_log.error(error)


runtime = Runtime()
