"""Starts the work of this process on the server's own event loop, once."""

import asyncio
import atexit
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable

from channels.layers import get_channel_layer
from channels.worker import Worker
from django.conf import settings

from gateway_app.providers.registry import get_providers
from gateway_app.runtime import processes
from gateway_app.runtime.dispatch import CHANNEL, LAYER, GenerateConsumer
from gateway_app.runtime.evictions import Evictions
from gateway_app.runtime.mcp import start_toolset, stop_toolset
from gateway_app.runtime.runner import Runner
from gateway_app.runtime.signals import end_children, exit_after
from gateway_app.tools.terminal import NO_SANDBOX, NO_SANDBOX_REMEDY, lacks_sandbox
from responses_app.database import database
from responses_app.eventlog.store import event_store
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.http.request_gate import request_gate
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.checkpoint import checkpoint_forever
from responses_app.services.lifecycle.claim import PROCESS_ID

logger = logging.getLogger(__name__)
away = ThrottledLog(logger, "The runner waits for the database")

RESTART_SECS = 1.0
# What comes after the grace: the turns stop, the leases are given back, the readers are told.
LEAVE_SECS = 0.5
LAST_WORDS_SECS = 0.2
TELL_SECS = 0.4
FAREWELL_SECS = 1.7


class Runtime:
    """The runner and the loops around it; strong references keep its tasks alive."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._draining: asyncio.Task[None] | None = None
        self.runner: Runner | None = None

    def ensure_started(self, role: str = "web") -> None:
        """Idempotent: a start hook, lifespan or the first request calls it."""
        if self.runner is not None:
            return
        loop = asyncio.get_running_loop()
        database.writer.start(loop)
        atexit.register(end_children)  # under a server that ends without a word to us
        self.runner = Runner()
        # A fresh context: what a request keeps in its context variables must not live on here.
        self._tasks.append(
            loop.create_task(self._run(self.runner, role), context=contextvars.Context())
        )

    async def _run(self, runner: Runner, role: str) -> None:
        async def register() -> None:
            sent_at = time.monotonic()
            await database.write(lambda: processes.register(PROCESS_ID, role))
            runner.heartbeat.note(sent_at)

        await _until_it_works(register)
        await asyncio.to_thread(
            get_providers, settings.HERMES_MODELS
        )  # its first import takes most of a second
        await asyncio.to_thread(_look_for_sandbox)
        worker = Worker(
            GenerateConsumer.as_asgi(runner=runner),
            channels=[CHANNEL],
            channel_layer=get_channel_layer(LAYER),
        )
        evict = Evictions().evict_forever
        loops = (
            *(start_toolset, worker.handle, runner.sweep_forever, runner.renew_forever),
            *(evict, checkpoint_forever),
        )
        await asyncio.gather(*(_until_it_works(loop) for loop in loops))

    # -- the end ------------------------------------------------------------------------
    def begin_drain(self) -> None:
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(
                self._drain(), context=contextvars.Context()
            )

    async def drain(self) -> None:
        """Finish what fits into the grace, leave the rest to the next start, and tell those who read it."""
        self.begin_drain()
        assert self._draining is not None
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        request_gate.close()
        grace = settings.HERMES_SHUTDOWN_GRACE
        deadline = asyncio.get_running_loop().time() + grace
        exit_after(grace + FAREWELL_SECS)
        if self.runner is not None:
            logger.info(
                "Shutting down; %d running responses have %g s.", len(self.runner.runs), grace
            )
            await self._end_work(self.runner, grace)
        await asyncio.gather(self._retire(), _dismiss_readers(deadline))
        await event_store.watcher.close(LAST_WORDS_SECS)
        await asyncio.to_thread(database.writer.stop)

    async def _end_work(self, runner: Runner, grace: float) -> None:
        runner.close()
        await runner.finished(grace)
        runner.leave()
        await asyncio.wait({asyncio.ensure_future(stop_toolset())}, timeout=LEAVE_SECS)
        await runner.finished(LEAVE_SECS)
        end_children()
        await runner.finished(LAST_WORDS_SECS)

    async def _retire(self) -> None:
        if self.runner is None:
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(
            {asyncio.ensure_future(_give_leases_back()), *self._tasks}, timeout=LEAVE_SECS
        )


def _look_for_sandbox() -> None:
    """Before the first turn: the look runs a program."""
    if lacks_sandbox(settings.HERMES_TERMINAL):
        logger.warning("The terminal is not offered: %s. Remedy: %s", NO_SANDBOX, NO_SANDBOX_REMEDY)


async def _dismiss_readers(deadline: float) -> None:
    event_store.dismiss_readers()
    rest = deadline - asyncio.get_running_loop().time()
    if not await request_gate.wait_until_idle(max(rest, TELL_SECS)):
        request_gate.cancel_running()
        await request_gate.wait_until_idle(LAST_WORDS_SECS)


async def _give_leases_back() -> None:
    """Without it, the leases of this process are free as soon as the next one finds it gone."""
    try:
        await database.write(lambda: processes.retire(PROCESS_ID))
    except StorageUnavailable as error:
        away.error(error)


async def _until_it_works(step: Callable[[], Awaitable[None]]) -> None:
    """A loop that dies quietly would leave a server that admits and never generates."""
    while True:
        try:
            return await step()
        except StorageUnavailable as error:
            away.error(error)
            await asyncio.sleep(RESTART_SECS)
        except Exception as error:
            logger.error("%s failed and is started again.", step.__name__, exc_info=error)
            await asyncio.sleep(RESTART_SECS)


runtime = Runtime()
