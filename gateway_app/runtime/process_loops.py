"""The loops of a process, by its role. One that fails is started again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from channels.layers import get_channel_layer
from channels.worker import Worker
from django.conf import settings

from gateway_app.platforms.worker import run_in_server as run_platforms
from gateway_app.runtime.cluster_dispatch import take_pinned_turns, take_turns
from gateway_app.runtime.dispatch import CHANNEL, LAYER, GenerateConsumer
from gateway_app.runtime.evictions import Evictions
from gateway_app.runtime.mcp import start_toolset
from gateway_app.runtime.roles import Role
from gateway_app.runtime.runner import Runner
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.checkpoint import checkpoint_forever

logger = logging.getLogger(__name__)
unavailable_log = ThrottledLog(logger, "The runner waits for the database")

RESTART_SECS = 1.0


def loops_of(runner: Runner) -> dict[str, Callable[[], Awaitable[None]]]:
    role = runner.claims.role
    steps: dict[str, Callable[[], Awaitable[None]]] = {"renew_forever": runner.renew_forever}
    if role == Role.PAGES:
        return steps
    local = Worker(
        GenerateConsumer.as_asgi(runner=runner),
        channels=[CHANNEL],
        channel_layer=get_channel_layer(LAYER),
    )
    steps["start_toolset"] = start_toolset
    steps["worker"] = local.handle
    steps["sweep_forever"] = runner.sweep_forever
    steps["evict_forever"] = Evictions().evict_forever
    steps["checkpoint_forever"] = checkpoint_forever
    if role == Role.WORKER and settings.REDIS_URL:
        steps["take_turns"] = partial(take_turns, runner)
        steps["take_pinned_turns"] = partial(take_pinned_turns, runner)
    if role == Role.WEB:
        steps["run_platforms"] = run_platforms
    return steps


async def until_it_works(name: str, step: Callable[[], Awaitable[None]]) -> None:
    """A loop that ends unnoticed would leave a server that admits and never generates."""
    while True:
        try:
            return await step()
        except StorageUnavailable as error:
            unavailable_log.error(error)
            await asyncio.sleep(RESTART_SECS)
        except Exception as error:
            logger.error("%s failed and is started again.", name, exc_info=error)
            await asyncio.sleep(RESTART_SECS)
