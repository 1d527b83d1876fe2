"""The exchange of hints with other processes, over one group of the channel layer."""

import asyncio
import logging
from typing import Any, cast

from channels.layers import get_channel_layer

from gateway_app.runtime.runner import Runner
from responses_app.eventlog.hints import GROUP, Hint, hints, send_hint
from responses_app.eventlog.store import event_store
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.protocol.errors import StorageUnavailable
from responses_app.services.lifecycle.claim import PROCESS_ID
from responses_app.streaming.revocation import revocation

logger = logging.getLogger(__name__)
layer_log = ThrottledLog(logger, "The channel layer takes no hints; readers are up to 1 s late")

PAUSE_SECS = 0.5  # after a failure; what comes meanwhile is sent together


async def send_hints() -> None:
    """Each commit makes one hint; while one is sent, the next ones become one."""
    while True:
        hint = await hints.take()
        try:
            await send_hint(hint, PROCESS_ID)
        except Exception as error:  # whatever the client of Redis raises
            layer_log.error(error)
            await asyncio.sleep(PAUSE_SECS)


async def follow_hints(runner: Runner) -> None:
    channel = await _subscribe()
    while True:
        message = await _layer().receive(channel)
        hint = cast(Hint, message)
        if message["sender"] != PROCESS_ID:
            _apply(hint, runner)
        if hint["is_key_revoked"]:  # in this process, too: a stream of the key may be open here
            await _check_keys()


async def _subscribe() -> str:
    while True:
        try:
            channel: str = await _layer().new_channel()
            await _layer().group_add(GROUP, channel)
            return channel
        except Exception as error:  # whatever the client of Redis raises
            layer_log.error(error)
            await asyncio.sleep(PAUSE_SECS)


def _apply(hint: Hint, runner: Runner) -> None:
    event_store.remote_logs.note(hint["stored"])
    for response_id in hint["cancelled"]:
        if runner.claims.takes_stored or response_id in runner.runs:
            runner.cancel(response_id)


async def _check_keys() -> None:
    try:
        await revocation.check()
    except StorageUnavailable as error:
        layer_log.error(error)


def _layer() -> Any:
    layer = get_channel_layer()
    assert layer is not None
    return layer
