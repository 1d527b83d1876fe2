"""Starts the work of this process on the server's own event loop, once."""

import asyncio
import contextvars
import logging

from channels.layers import get_channel_layer
from channels.worker import Worker

from gateway_app.runtime import processes
from gateway_app.runtime.dispatcher import CHANNEL, LAYER
from gateway_app.runtime.runner import Runner
from gateway_app.runtime.worker import GenerateConsumer
from responses_app.eventlog import event_store

logger = logging.getLogger(__name__)


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
        await event_store.write(lambda: processes.register(event_store.process_id, role))
        worker = Worker(
            GenerateConsumer.as_asgi(runner=runner), channels=[CHANNEL], channel_layer=get_channel_layer(LAYER)
        )
        await asyncio.gather(worker.handle(), runner.sweep_forever(), runner.renew_forever())


runtime = Runtime()
