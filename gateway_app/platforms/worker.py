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

FINISH_SECS = 5.0
HOUSEKEEPING_SECS = 3600.0

Step = Callable[[], Awaitable[bool]]  # True: there may be more to do at once


async def run_in_server() -> None:
    """In every server process. Compare-and-set moves share the work with the others."""
    if not adapters():
        return
    async with asyncio.TaskGroup() as loops:  # ends after all of its tasks, unlike gather
        loops.create_task(_admit_until_the_end())
        for adapter in server_adapters():
            loops.create_task(
                run_adapter(adapter, only_own_turns=settings.HERMES_DISPATCH != "workers")
            )


async def _admit_until_the_end() -> None:
    """A process that is about to end takes no new turn; another one does."""
    while not request_gate.is_closed:
        await attempt(admit_due, wakeups.inbox, settings.HERMES_PLATFORM_POLL_SECS)


async def run_adapter(adapter: Adapter, *, only_own_turns: bool) -> None:
    """Everything that goes out to one platform."""
    poll_secs: float = settings.HERMES_PLATFORM_POLL_SECS
    sender = Sender(adapter)
    follower = Follower(adapter, only_own_turns=only_own_turns)
    await adapter.start()
    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(repeat(sender.step, wakeups.outbox, poll_secs))
            loops.create_task(repeat(follower.step, Wakeup(), poll_secs))
            loops.create_task(repeat(partial(_report, adapter), Wakeup(), REPORT_SECS))
            loops.create_task(repeat(forget_old, Wakeup(), HOUSEKEEPING_SECS))
    finally:
        await sender.finish(FINISH_SECS)
        await follower.stop()
        await adapter.stop()


async def _report(adapter: Adapter) -> bool:
    await report_health(adapter.name, await adapter.health())
    return False


async def repeat(step: Step, wakeup: Wakeup, pause_secs: float) -> None:
    """A wake-up may be lost, and another process may store a message: the pause is limited.

    Until it is cancelled: the last turns of a process that drains are answered too.
    """
    while True:
        await attempt(step, wakeup, pause_secs)


async def attempt(step: Step, wakeup: Wakeup, pause_secs: float) -> None:
    """A step that fails is tried again: a loop that ends unnoticed would lose messages."""
    has_more = False
    try:
        has_more = await step()
    except StorageUnavailable as error:
        unavailable_log.error(error)
    except Exception:
        logger.exception("A step of a platform failed and is tried again.")
    if not has_more:
        await wakeup.wait(pause_secs)
