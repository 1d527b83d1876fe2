"""The loops of a process that serves platforms: admit, send, follow running turns, report."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from django.conf import settings

from gateway_app.platforms import wakeups
from gateway_app.platforms.adapter import Adapter
from gateway_app.platforms.admission import admit_due
from gateway_app.platforms.following import Follower
from gateway_app.platforms.housekeeping import forget_old
from gateway_app.platforms.outbox import Sender
from gateway_app.platforms.registry import adapters, server_adapters
from gateway_app.platforms.states import REPORT_SECS, report_health
from gateway_app.platforms.wakeups import Wakeup
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.http.request_gate import request_gate
from responses_app.protocol.errors import StorageUnavailable

logger = logging.getLogger(__name__)
unavailable_log = ThrottledLog(logger, "Platforms wait for the database")

POLL_SECS = 1.0  # a wake-up may be lost, and another process may store a message
FINISH_SECS = 5.0
HOUSEKEEPING_SECS = 3600.0

Step = Callable[[], Awaitable[bool]]  # True: there may be more to do at once


async def run_in_server() -> None:
    """In every server process. Compare-and-set moves share the work with the others."""
    if not adapters():
        return
    loops = [repeat(admit_due, wakeups.inbox)]
    for adapter in server_adapters():
        loops.append(run_adapter(adapter, only_own_turns=settings.HERMES_DISPATCH != "workers"))
    await asyncio.gather(*loops)


async def run_adapter(adapter: Adapter, *, only_own_turns: bool) -> None:
    """Everything that goes out to one platform."""
    sender = Sender(adapter)
    follower = Follower(adapter, only_own_turns=only_own_turns)
    await adapter.start()
    try:
        await asyncio.gather(
            repeat(sender.step, wakeups.outbox),
            repeat(follower.step, Wakeup()),
            repeat(partial(_report, adapter), Wakeup(), REPORT_SECS),
            repeat(forget_old, Wakeup(), HOUSEKEEPING_SECS),
        )
    finally:
        await sender.finish(FINISH_SECS)
        await follower.stop()
        await adapter.stop()


async def _report(adapter: Adapter) -> bool:
    await report_health(adapter.name, await adapter.health())
    return False


async def repeat(step: Step, wakeup: Wakeup, pause_secs: float = POLL_SECS) -> None:
    """A step that fails is tried again: a loop that ends unnoticed would lose messages."""
    while not request_gate.is_closed:
        has_more = False
        try:
            has_more = await step()
        except StorageUnavailable as error:
            unavailable_log.error(error)
        except Exception:
            logger.exception("A step of a platform failed and is tried again.")
        if not has_more:
            await wakeup.wait(pause_secs)
