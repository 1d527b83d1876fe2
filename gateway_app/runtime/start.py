"""Starts the work of this process on the server's own event loop, once."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable

from channels.layers import get_channel_layer
from channels.worker import Worker
from django.conf import settings

from gateway_app.providers import get_provider
from gateway_app.runtime import processes
from gateway_app.runtime.dispatcher import CHANNEL, LAYER
from gateway_app.runtime.runner import Runner
from gateway_app.runtime.worker import GenerateConsumer
from responses_app.eventlog import event_store

logger = logging.getLogger(__name__)

RESTART_SECS = 1.0


class Runtime:
    """The runner and the loops around it; strong references keep its tasks alive."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.runner: Runner | None = None

    def ensure_started(self, role: str = "web") -> None:
        """Idempotent: a start hook, lifespan or the first request calls it."""
        if self.runner is not None:
            return
        loop = asyncio.get_running_loop()
        event_store.writer.start(loop)
        self.runner = Runner()
        # A fresh context: what a request keeps in its context variables must not live on here.
        self._tasks.append(loop.create_task(self._run(self.runner, role), context=contextvars.Context()))

    async def _run(self, runner: Runner, role: str) -> None:
        async def register() -> None:
            await event_store.write(lambda: processes.register(event_store.process_id, role))

        await _until_it_works(register)
        await asyncio.to_thread(get_provider, settings.HERMES_PROVIDER)  # its first import takes most of a second
        worker = Worker(
            GenerateConsumer.as_asgi(runner=runner), channels=[CHANNEL], channel_layer=get_channel_layer(LAYER)
        )
        loops = (worker.handle, runner.sweep_forever, runner.renew_forever)
        await asyncio.gather(*(_until_it_works(loop) for loop in loops))

    def stop(self) -> None:
        """After the last request: commit what is pending and leave the rest for the next start."""
        if self.runner is not None:
            event_store.submit(lambda: processes.retire(event_store.process_id))
            event_store.writer.stop()


async def _until_it_works(step: Callable[[], Awaitable[None]]) -> None:
    """A loop that dies quietly would leave a server that admits and never generates."""
    while True:
        try:
            return await step()
        except Exception as error:
            logger.error("%s failed and is started again: %s", step.__name__, error, exc_info=error)
            await asyncio.sleep(RESTART_SECS)


runtime = Runtime()
