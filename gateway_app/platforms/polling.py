"""A platform with a process of its own: it is asked for messages, and gets those of its outbox."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings

from gateway_app.platforms.adapter import Adapter, AdapterHealth
from gateway_app.platforms.inbox import store_received
from gateway_app.platforms.states import report_health, stored_cursor
from gateway_app.platforms.wakeups import Wakeup
from gateway_app.platforms.worker import repeat, run_adapter
from responses_app.database import database
from responses_app.models import PlatformStatus

SHOW_SECS = 1.0

ShowCode = Callable[[str], None]


async def run_platform(adapter: Adapter, show_code: ShowCode, stopping: asyncio.Event) -> None:
    """Until it is stopped. The server's processes admit what is stored here, and run the turns."""
    database.writer.start(asyncio.get_running_loop())
    work = asyncio.create_task(_work(adapter, show_code))
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        either: set[asyncio.Future[Any]] = {work, waiting}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        work.cancel()
        waiting.cancel()
        await asyncio.wait({work})  # until the bridge has ended
        await report_health(adapter.name, AdapterHealth(PlatformStatus.STOPPED))
        await asyncio.to_thread(database.close)


async def _work(adapter: Adapter, show_code: ShowCode) -> None:
    """Raises what makes it impossible to go on."""
    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(run_adapter(adapter, only_own_turns=False))
            poll_secs: float = settings.HERMES_PLATFORM_POLL_SECS
            loops.create_task(repeat(partial(_receive, adapter), Wakeup(), poll_secs))
            loops.create_task(_watch_pairing(adapter, show_code))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group


async def _receive(adapter: Adapter) -> bool:
    """The next request acknowledges what this one brought: by then it is stored."""
    cursor = await database.read(stored_cursor, adapter.name)
    received = await adapter.receive(cursor)
    if received.messages or received.cursor != cursor:
        await database.write(partial(store_received, adapter, received))
    return True


async def _watch_pairing(adapter: Adapter, show_code: ShowCode) -> None:
    """Show each new code once, for the operator at the terminal."""
    shown = ""
    while True:
        adapter.check_running()
        health = await adapter.health()
        if health.pairing_code and health.pairing_code != shown:
            await report_health(adapter.name, health)
            show_code(health.pairing_code)
        shown = health.pairing_code
        await asyncio.sleep(SHOW_SECS)
